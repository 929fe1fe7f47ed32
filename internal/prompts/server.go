package prompts

import (
	"time"

	"example.org/pilotfish/internal/recent"
)

// belief is the probability that a block is cached that was sent to a server.
const belief = 0.95

// Server is what is known of one server. The zero value is a server that got no prompt.
type Server struct {
	blocks   recent.Keys // those that were sent there
	events   recent.Keys // those that events of the server show as cached
	lifetime lifetime
	queue    queue
}

// Hit is what a server has cached of a prompt.
type Hit struct {
	// Share is the share of the bytes, by the probability that they are there.
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

// Restarted forgets the cache. Prompts that are open stay until they end.
func (s *Server) Restarted() { s.blocks, s.events, s.lifetime = recent.Keys{}, recent.Keys{}, 0 }

// Change is what events of a server report of its cache, in the order of the fields.
type Change struct {
	// Lost is set if events are missing: the events before it are no longer believed.
	Lost bool
	// Cleared is set if the cache was emptied.
	Cleared bool
	// Removed and Stored are keys of blocks.
	Removed, Stored []uint64
}

// Apply adopts a change. A block that no event has named is still assumed to be cached if it was sent to the server.
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
	seconds float64       // to read what is not cached
	alone   bool          // nothing was to be read before it
	kept    time.Duration // age of the last block that was cached; 0 is unknown
	expired bool          // the next block was sent before, and its lifetime is over
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

// Learn observes how long the server read, if it read nothing else and most of the prompt. answer is the time that a response
// takes to start without reading, in seconds.
func (f *Prefill) Learn(now time.Time, answer float64) {
	if f.alone && f.Share < 0.5 {
		f.model.learn(f.Bytes, now.Sub(f.sent).Seconds()/(1-f.Share), answer)
	}
}

// Found observes the share of the prompt that was cached, as the response states. first is set if the prompt went to its
// first-ranked server: blocks that are cached there and were not sent by this sidecar were sent by other sidecars.
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

// Missed drops blocks that the server did not get: those that were not cached before, or all.
func (f *Prefill) Missed(all bool) {
	from := f.Hit.blocks
	if all {
		from = 0
	}
	for _, block := range f.Prompt.blocks[from:] {
		f.server.blocks.Drop(block.Key)
	}
}
