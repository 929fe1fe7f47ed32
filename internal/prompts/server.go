package prompts

import (
	"time"

	"example.org/pilotfish/internal/recent"
)

// belief is the assumed probability that a block that was sent to a server is cached there.
const belief = 0.95

// Server is the state of one server. The zero value is a server that got no prompt.
type Server struct {
	blocks   recent.Keys // blocks of the prompts that were sent there
	events   recent.Keys // blocks that are cached according to the server's events
	lifetime lifetime
	queue    queue
}

// Hit is the part of a prompt that a server has cached.
type Hit struct {
	// Share is the cached share of the prompt's bytes, weighted with the probability that each block is cached.
	Share float64
	// Placed is set if the placing block is cached, and Reported if an event of the server shows it.
	Placed, Reported bool

	blocks int
	bytes  float64 // of these blocks
}

// Hit returns the prefix of a prompt that is cached.
func (s *Server) Hit(now time.Time, p *Prompt) (h Hit) {
	expected := 0.0
	for i := range p.blocks {
		sure := 1.0
		if !s.events.Has(p.blocks[i].Key) {
			age, sent := s.blocks.Age(p.blocks[i].Key, now)
			if !sent || !s.lifetime.keeps(age) {
				break
			}
			sure = belief
		} else if i == p.place {
			h.Reported = true
		}
		h.blocks++
		h.bytes += p.blocks[i].Bytes
		expected += sure * p.blocks[i].Bytes
	}
	h.Share, h.Placed = expected/p.Bytes, h.blocks > p.place
	return h
}

// Wait is the time until the server starts to read another prompt, in seconds.
func (s *Server) Wait(now time.Time) float64 { return s.queue.wait(now) }

// Blocks is the number of blocks that were sent there and may be cached.
func (s *Server) Blocks() int { return s.blocks.Len() }

// Report adopts what the server reports.
func (s *Server) Report(m *Model, r Report) { s.queue.report(r, m.reads.mean, m.perByte) }

// Restarted drops all that was learned of the server. Open prompts stay in the queue until they end.
func (s *Server) Restarted() { *s = Server{queue: queue{prompts: s.queue.prompts, own: s.queue.own}} }

// Change is a change of a server's cache that events report. Its fields apply in order.
type Change struct {
	// Lost is set if events were lost. Earlier events then no longer count.
	Lost bool
	// Cleared is set if the cache was emptied.
	Cleared bool
	// Removed and Stored are keys of blocks.
	Removed, Stored []uint64
}

// Apply applies a change that the server reported. Events are incomplete, so a block that was sent to the server and
// that no event has named still counts as cached.
func (s *Server) Apply(now time.Time, c Change) {
	if c.Lost || c.Cleared {
		s.events = recent.Keys{}
	}
	if c.Cleared {
		s.blocks = recent.Keys{}
	}
	for _, key := range c.Removed {
		s.events.Drop(key)
		s.blocks.Drop(key)
	}
	for _, key := range c.Stored {
		s.events.Put(key, now)
	}
}

// Prefill is a prompt at a server, from Send to its end.
type Prefill struct {
	Hit
	*Prompt
	model   *Model
	server  *Server
	sent    time.Time
	seconds float64       // reading time of the uncached part
	alone   bool          // the server had no other prompt to read first
	kept    time.Duration // age of the last cached block of the prompt; 0 means unknown
	expired bool          // the block after that was sent earlier, but longer ago than the lifetime
}

// Send adds a prompt to the server's queue, and its blocks to the cache.
func (s *Server) Send(now time.Time, m *Model, p *Prompt) *Prefill {
	f := &Prefill{Hit: s.Hit(now, p), Prompt: p, model: m, server: s, sent: now}
	if n := f.Hit.blocks; n > 0 {
		f.kept, _ = s.blocks.Age(p.blocks[n-1].Key, now)
	}
	if n := f.Hit.blocks; n < len(p.blocks) {
		_, f.expired = s.blocks.Age(p.blocks[n].Key, now)
	}
	for i := range p.blocks {
		s.blocks.Put(p.blocks[i].Key, now)
	}
	wait := s.queue.wait(now)
	f.alone, f.seconds = wait == 0, (1-f.Share)*m.ReadTime(p)
	s.queue.add(now, f.seconds)
	m.reads.observe(f.seconds)
	m.queued.observe(wait / max(m.reads.mean, 1e-9))
	return f
}

// Answered takes the prompt out of the queue: its response starts.
func (f *Prefill) Answered() { f.server.queue.answered(f.sent, f.seconds) }

// Learn learns the reading speed from the time to first byte, if the server had no other prompt to read and had to read
// most of this one. usual is the time to first byte without reading, in seconds.
func (f *Prefill) Learn(now time.Time, usual float64) {
	if f.alone && f.Share < 0.5 {
		f.model.learn(f.Bytes, now.Sub(f.sent).Seconds()/(1-f.Share), usual)
	}
}

// Found learns from the share of the prompt that was cached, as the response states it. first is set if the prompt went
// to its first-ranked server. Blocks that were cached there, and that this sidecar had not sent, were sent by other
// sidecars.
func (f *Prefill) Found(share float64, first bool) {
	if !(share >= 0 && share <= 1) {
		return
	}
	if first && !f.Placed {
		f.model.hits.observe(max(share-f.Share, 0) / (1 - f.Share))
	}
	f.server.lifetime.learn(share*f.Bytes-f.Hit.bytes, f.Prompt.blocks[0].Bytes, f.kept, f.expired)
}

// Ended takes the prompt out of the queue: it ends without a response.
func (f *Prefill) Ended() { f.server.queue.remove(f.seconds) }

// Missed drops the assumption that blocks are cached, because the server may not have received them: all blocks, or
// only those that were not cached before.
func (f *Prefill) Missed(all bool) {
	from := f.Hit.blocks
	if all {
		from = 0
	}
	for _, block := range f.Prompt.blocks[from:] {
		f.server.blocks.Drop(block.Key)
	}
}
