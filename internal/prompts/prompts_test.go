package prompts

import (
	"container/list"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/hash"
	"example.org/pilotfish/internal/intake"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// chain is the blocks of a prompt, of 1,000 bytes each.
func chain(blocks ...int) (parts []intake.Part) {
	h := uint64(0)
	for _, block := range blocks {
		h = hash.Pair(h, uint64(block)+1)
		parts = append(parts, intake.Part{Key: h, Bytes: 1000})
	}
	return parts
}

// send sends a prompt, as the pool does.
func send(m *Model, s *Server, now time.Time, blocks ...int) *Prefill {
	p := m.Prompt(chain(blocks...))
	m.Observe(p)
	return s.Send(now, m, p)
}

// The block after the deepest fork places a prompt. To look changes nothing.
func TestPlacingBlock(t *testing.T) {
	m := NewModel()
	place := func(blocks ...int) int {
		p := m.Prompt(chain(blocks...))
		require.Equal(t, *p, *m.Prompt(chain(blocks...)))
		m.Observe(p)
		assert.Equal(t, chain(blocks...)[p.place].Key, p.Place)
		return p.place
	}
	for range 3 {
		assert.Equal(t, 0, place(1, 2, 3, 4), "the same block followed each time")
	}
	assert.Equal(t, 2, place(1, 2, 5), "2 was followed by 3")
	assert.Equal(t, 2, place(1, 2, 3, 4, 6))
	assert.Equal(t, 4, place(1, 2, 3, 4, 7))
	for range 2 {
		assert.Equal(t, 4, place(1, 2, 3, 4, 6), "a fork stays one")
	}
	assert.Equal(t, 1, place(1, 9, 3, 4))
}

// lru is a server's cache of blocks.
type lru struct {
	size  int
	order list.List // of keys, the latest first
	at    map[uint64]*list.Element
}

// read returns the prefix of a prompt that was cached; then all blocks are.
func (c *lru) read(blocks []intake.Part) (found int) {
	for found < len(blocks) && c.at[blocks[found].Key] != nil {
		found++
	}
	for i := len(blocks) - 1; i >= 0; i-- {
		if e := c.at[blocks[i].Key]; e != nil {
			c.order.MoveToFront(e)
		} else {
			c.at[blocks[i].Key] = c.order.PushFront(blocks[i].Key)
		}
		if c.order.Len() > c.size {
			delete(c.at, c.order.Remove(c.order.Back()).(uint64))
		}
	}
	return found
}

// Little of what a small cache has evicted is believed to be cached once responses have stated what prompts found. If no
// response does, all of it is.
func TestLifetimeIsLearned(t *testing.T) {
	wrong := func(size int, stated bool) (share float64, learned lifetime) {
		m, s, cache := NewModel(), &Server{}, &lru{size: size, at: map[uint64]*list.Element{}}
		rng, now := rand.New(rand.NewPCG(3, 4)), start
		off, all := 0, 0
		for step := range 4000 {
			now = now.Add(time.Second)
			f := send(m, s, now, 1000, 2000+rng.IntN(60), 1, 2, 3, 4)
			found := cache.read(f.Prompt.blocks)
			if step > 2000 {
				all += 6
				off += max(found-f.Hit.blocks, f.Hit.blocks-found)
			}
			f.Answered()
			if stated {
				f.Found(float64(found)/6, false)
			}
		}
		return float64(off) / float64(all), s.lifetime
	}
	off, learned := wrong(100, true) // 20 of the 60 chats
	assert.Less(t, off, 0.25)
	assert.Greater(t, learned, lifetime(5*time.Second))
	assert.Less(t, learned, lifetime(60*time.Second))
	blind, _ := wrong(100, false)
	assert.Greater(t, blind, 0.4)
	off, learned = wrong(1000, true)
	assert.Zero(t, off)
	assert.Zero(t, learned, "nothing was ever evicted")
}

// What a response says counts for nothing if it is no share.
func TestNonsenseFound(t *testing.T) {
	m, s := NewModel(), &Server{}
	send(m, s, start, 1, 2, 3, 4).Answered()
	f := send(m, s, start.Add(time.Minute), 1, 2, 3, 4)
	f.Found(-1, true)
	f.Found(1.01, true)
	assert.Zero(t, s.lifetime)
	f.Found(0, true)
	assert.Equal(t, lifetime(time.Minute), s.lifetime)
	later := start.Add(2*time.Minute + time.Second)
	assert.Zero(t, s.Hit(later, f.Prompt))
	assert.Zero(t, m.FirstPlaceHitRate(), "it was sent from here")
	send(m, s, later, 5, 6).Found(0.5, true)
	assert.Equal(t, 0.5, m.FirstPlaceHitRate())
	send(m, s, later, 7, 8).Found(1, false)
	assert.Equal(t, 0.5, m.FirstPlaceHitRate(), "not the first-ranked server")
}

// Events show which blocks are cached, whoever sent them, and which no longer are. When events are missing, the blocks that were
// sent count as without events.
func TestEventsShowTheCache(t *testing.T) {
	m, s := NewModel(), &Server{}
	blocks := chain(1, 2, 3, 4)
	keys := func(from, until int) (k []uint64) {
		for _, b := range blocks[from:until] {
			k = append(k, b.Key)
		}
		return k
	}
	p := m.Prompt(blocks)
	hit := func() float64 { return s.Hit(start, p).Share }
	s.Apply(start, Change{Stored: keys(0, 3)})
	assert.Equal(t, 0.75, hit(), "others sent it")
	send(m, s, start, 1, 2, 3, 4)
	assert.Equal(t, (3+belief)/4, hit(), "no event has named the last block yet")
	s.Apply(start, Change{Removed: keys(1, 2)})
	assert.Equal(t, 0.25, hit(), "no block after one that is missing")
	s.Apply(start, Change{Removed: keys(2, 3), Stored: keys(1, 3)})
	assert.Equal(t, (3+belief)/4, hit())
	s.Apply(start, Change{Lost: true})
	assert.Equal(t, belief/4, hit(), "blocks whose removal was reported do not come back")
	s.Apply(start, Change{Cleared: true, Stored: keys(0, 1)})
	assert.Equal(t, 0.25, hit())
	s.Restarted()
	assert.Zero(t, hit())
}

// The time to read a byte is learned from prompts that a server read alone and mostly anew.
func TestReadTimeIsLearned(t *testing.T) {
	m, s := NewModel(), &Server{}
	before := m.perByte
	send(m, s, start, 1, 2).Ended()
	again := send(m, s, start, 1, 2)
	again.Learn(start.Add(time.Hour), 0.1)
	again.Ended()
	assert.Equal(t, before, m.perByte, "it was cached")
	for i := range 50 {
		first, behind := send(m, s, start, 10+i, 1, 2, 3), send(m, s, start, 100+i, 1, 2, 3)
		first.Learn(start.Add(200*time.Millisecond), 0.001)
		behind.Learn(start.Add(400*time.Millisecond), 0.001)
		first.Ended()
		behind.Ended()
	}
	assert.InEpsilon(t, 0.05/1000, m.perByte, 0.15)
}

// Others' prompts count by their number. If the server reports how many it started, the one that it reads counts, too.
func TestReportsOfUnreadPrompts(t *testing.T) {
	q := queue{own: 1, prompts: 1}
	for _, c := range []struct {
		running, waiting, completed, started float64
		want                                 float64
	}{
		{7, 3, -1, 0, 5},
		{7, 0, -1, 0, 1}, // at least its own
		{7, 3, 10, 16, 7},
		{7, 0, 10, 15, 3},
		{0, 0, 12, 10, 1}, // two were aborted while they waited
		{7, 3, 20, 24, 7},
		{2, 0, 20, 1, 3}, // no more than there are
	} {
		q.report(Report{At: start, Running: c.running, Waiting: c.waiting, Completed: c.completed, Started: c.started}, 2, 1e-3)
		assert.Equal(t, c.want, q.wait(start), "%+v", c)
	}
	assert.Equal(t, 1.0, q.wait(start.Add(time.Minute)))
}

// After a restart only this sidecar's own prompts are left, and the counts of the process before do not matter.
func TestTheQueueAfterARestart(t *testing.T) {
	var s Server
	s.queue.add(start, 1)
	for _, r := range []Report{{Completed: 12, Started: 10}, {Running: 7, Waiting: 3, Completed: 20, Started: 24}} {
		r.At = start
		s.queue.report(r, 2, 1e-3)
	}
	s.Restarted()
	assert.Equal(t, 1.0, s.Wait(start))
	s.queue.report(Report{At: start, Running: 7, Waiting: 3, Completed: 1, Started: 5}, 2, 1e-3)
	assert.Equal(t, 1.0+2*5, s.Wait(start))
}

// The prompt that the server reads takes as long as its bytes, less the time since it started; the rest as prompts in the mean.
func TestWhatIsBeingReadIsKnown(t *testing.T) {
	var q queue
	wait := func(after time.Duration, waiting, read float64) float64 {
		r := Report{At: start.Add(after), Waiting: waiting, Completed: -1, Read: read}
		q.report(r, 2, 1e-6)
		return q.wait(r.At)
	}
	long := 500.0
	assert.Equal(t, 4.0, wait(0, 2, 9e9), "what it read before is not known")
	assert.InDelta(t, 2+long-1, wait(2*time.Second, 2, 9.5e9), 1e-9)
	assert.InDelta(t, 2+long-5, wait(6*time.Second, 2, 9.5e9), 1e-9)
	assert.InDelta(t, long/10, wait(10*time.Minute, 1, 9.5e9), 1e-9)
	assert.Zero(t, wait(12*time.Minute, 0, 9.5e9))
	assert.InDelta(t, 2+long/10, wait(13*time.Minute, 2, 100), 1e-9, "the server restarted")
}

// A response shows that everything sent before its prompt was read, but not which of others' prompts.
func TestResponsesShowWhatWasRead(t *testing.T) {
	var q queue
	q.add(start, 5)
	q.report(Report{At: start.Add(time.Second), Running: 1, Waiting: 3, Completed: -1}, 2, 1e-3)
	now := start.Add(2 * time.Second)
	assert.Equal(t, 5.0+2*2-1, q.wait(now))
	q.answered(start, 5)
	assert.Equal(t, 2*2.0, q.wait(now))
	q.add(now, 7)
	q.add(now, 1)
	assert.Equal(t, 2*2.0+8, q.wait(now))
	q.answered(now, 7)
	assert.Equal(t, 1.0, q.wait(now))
	q.remove(1)
	assert.Zero(t, q.wait(now))
}
