package dispatch

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/selection"
)

// jobThatWaits is a job that may wait.
func jobThatWaits(p selection.Priority, bytes int64) *Job {
	return &Job{Request: Request{Priority: p, Bytes: bytes}}
}

// naive is the queue as one would say it: a slice in order of arrival.
type naive []*Job

func (n naive) order() []*Job {
	var out []*Job
	for _, p := range []selection.Priority{selection.High, selection.Low} {
		for _, e := range n {
			if e.Priority == p {
				out = append(out, e)
			}
		}
	}
	return out
}

func (n naive) bytes() (sum int64) {
	for _, e := range n {
		sum += e.Bytes
	}
	return sum
}

func (n naive) push(e *Job, cfg QueueSettings) (naive, []*Job, bool) {
	fits := func(n naive) bool { return len(n) < cfg.Jobs && n.bytes()+e.Bytes <= int64(cfg.Bytes) }
	rest, shed := slices.Clone(n), []*Job(nil)
	for e.Priority == selection.High && !fits(rest) {
		i := len(rest) - 1
		for i >= 0 && rest[i].Priority != selection.Low {
			i--
		}
		if i < 0 {
			break
		}
		shed = append(shed, rest[i])
		rest = slices.Delete(rest, i, i+1)
	}
	if !fits(rest) {
		return n, nil, false
	}
	return append(rest, e), shed, true
}

func TestAgainstNaiveQueue(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		cfg := QueueSettings{Jobs: 1 + rng.IntN(20), Bytes: settings.Size(1 + rng.Int64N(2000))}
		q := newQueue(cfg)
		var n naive
		for range 500 {
			if rng.IntN(3) > 0 {
				e := jobThatWaits(selection.Priority(rng.IntN(2)), rng.Int64N(300))
				next, wantShed, ok := n.push(e, cfg)
				shed, pushed := q.push(e)
				require.Equal(t, ok, pushed)
				require.Equal(t, wantShed, shed)
				n = next
			} else if len(n) > 0 {
				i := rng.IntN(len(n))
				require.True(t, q.remove(n[i]))
				require.False(t, q.remove(n[i]), "removed twice")
				n = slices.Delete(n, i, i+1)
			}
			require.Equal(t, n.order(), slices.Collect(q.all))
			require.Equal(t, len(n), q.len())
			require.Equal(t, n.bytes(), q.bytes)
		}
	}
}

func TestEntriesMayLeaveWhileListed(t *testing.T) {
	q := newQueue(DefaultQueue())
	for range 10 {
		_, ok := q.push(jobThatWaits(selection.Low, 0))
		require.True(t, ok)
	}
	for e := range q.all {
		q.remove(e)
	}
	assert.Zero(t, q.len())
}

func TestHighWaitsBehindHighOnly(t *testing.T) {
	q := newQueue(DefaultQueue())
	for _, p := range []selection.Priority{selection.Low, selection.Low, selection.High} {
		_, ok := q.push(jobThatWaits(p, 0))
		require.True(t, ok)
	}
	assert.Equal(t, 1, q.ahead(selection.High))
	assert.Equal(t, 3, q.ahead(selection.Low))
}

// Serve asks until so many in a row hear that no upstream is eligible.
func TestServeStops(t *testing.T) {
	for name, c := range map[string]struct {
		replies      []reply // repeated
		asked, stays int
	}{
		"all are served":                 {[]reply{served}, 1000, 0},
		"none can be":                    {[]reply{noneEligible}, 8, 1000},
		"those passed over do not count": {[]reply{passedOver, passedOver, noneEligible}, 24, 1000},
		"nor do the served":              {[]reply{noneEligible, served}, 1000, 500},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQueue(DefaultQueue())
			for range 1000 {
				_, ok := q.push(jobThatWaits(selection.Low, 0))
				require.True(t, ok)
			}
			asked := 0
			q.serve(func(*Job) reply {
				asked++
				return c.replies[(asked-1)%len(c.replies)]
			})
			assert.Equal(t, c.asked, asked)
			assert.Equal(t, c.stays, q.len())
		})
	}
}

func TestAFullQueueShedsLowForHigh(t *testing.T) {
	f := newFixture(t, 1, func(c *Config) { c.Queue.Jobs = 1 })
	f.load(start, 0, 1000)
	low := f.wait(start, Request{})
	g, granted := f.Arrive(start, f.Begin(Request{}))
	require.True(t, granted)
	require.ErrorIs(t, g.Err, ErrFull, "low does not push out low")
	require.NotErrorIs(t, g.Err, ErrDisplaced)
	require.EqualError(t, g.Err, "too many jobs wait for an upstream (1)")
	high := f.wait(start, Request{Priority: selection.High})
	require.ErrorIs(t, f.granted[low].Err, ErrDisplaced)
	f.load(start.Add(1), 0, 0)
	require.NoError(t, f.granted[high].Err)
}

func TestGivingUp(t *testing.T) {
	f := newFixture(t, 1, nil)
	f.load(start, 0, 1000)
	j := f.wait(start, Request{})
	assert.Equal(t, start.Add(10*time.Second), j.GiveUpAt())
	assert.True(t, f.GiveUp(j))
	assert.False(t, f.GiveUp(j), "it does not wait any more")
	assert.Zero(t, f.Waiting())

	j = f.wait(start, Request{})
	f.load(start.Add(1), 0, 0)
	assert.False(t, f.GiveUp(j), "it was served first")
	assert.NoError(t, f.granted[j].Err)
}

// A job's own queue timeout is for all its waits together; the configured
// bound, for jobs that give none, is for each.
func TestHowLongAJobWaits(t *testing.T) {
	for own, want := range map[time.Duration]time.Duration{
		0: 10 * time.Second, 5 * time.Second: 4 * time.Second, time.Millisecond: 0,
	} {
		f := newFixture(t, 2, nil)
		f.load(start, 0, 1000)
		f.load(start, 1, 1000)
		j := f.wait(start, Request{Queue: own})
		now := start.Add(time.Second)
		f.load(now, 0, 0)
		f.fail(now, f.granted[j], Failure{Outcome: pool.Refused})
		_, granted := f.Arrive(now, j)
		require.False(t, granted)
		assert.Equal(t, now.Add(want), j.GiveUpAt(), "own bound %v", own)
	}
}
