// Package prompts knows what language models make of a job: which part of its prompt each server has cached, and how long a
// server reads before it starts to answer. The pool needs it only for jobs whose data is text in blocks; others never reach it.
//
// A prompt is a chain of blocks. The key of a block hashes everything before it, so two prompts share blocks up to where their
// texts part, and never after that:
//
//	system prompt ── tools ─┬─ chat 1 ── turn 1 ── turn 2
//	                        └─ chat 2 ── turn 1
//	                        ^ a fork: two blocks followed this one
//
// A server can use the blocks that it has cached from the first one on: the prefix hit. It reads (prefills) the rest, one
// prompt at a time.
//
//	     Send              Answered
//	idle ────> queued, read ────────> answering: counts no more
//	                │ Ended: no response
//	                └──────> gone: the blocks that the server may not have got are dropped
//
// What holds:
//
//   - A hit is a prefix: no block counts after one that is missing.
//   - The placing block of a prompt is the one after its deepest fork, or the first block without a fork. So the turns of a chat
//     stay together in all sidecars, and the chats of one template spread out.
//   - A block is cached if an event of the server said so last. A block that no event has named is assumed to be cached from when
//     it was sent until its lifetime is over.
//   - The wait of a queue is at least what this sidecar's own unread prompts take, and 0 when nothing is unread.
//   - Every prompt that is sent leaves the queue once, by Answered or by Ended.
//   - Memory is bounded: 128 Ki forks, and 2 times 128 Ki blocks (3 MiB) for each server.
//
// Nothing here has a clock, a lock or a goroutine; the pool is the only caller.
package prompts

import (
	"math"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/recent"
)

const (
	// maxForks bounds the blocks that are remembered with the block that followed: about 4 MB.
	maxForks = 1 << 17
	// forked is the follower of a block that was followed by several.
	forked = 1
	// lately is the number of prompts over which averages are taken.
	lately = 100

	// Servers read about 8,000 tokens of four bytes in a second, until prompts have shown how many. A prompt moves the time
	// for a byte by a tenth at most.
	perBytePrior, perByteMin, perByteMax = 3e-5, 1e-10, 1e-4
	perByteStep                          = 1.1
)

// Model is what a sidecar has learned from the prompts that it sent to any server.
type Model struct {
	forks   *recent.Map[uint32] // by block: the block that followed it, or forked
	perByte float64             // time to read a byte, in seconds
	reads   average             // time to read what was not cached of a prompt, in seconds
	queued  average             // prompts that waited before one: as many wait behind one (Little's law)
	hits    average             // share of the bytes not sent by this sidecar that was cached at the first-ranked server
}

// NewModel returns a model that has seen no prompt.
func NewModel() *Model {
	return &Model{forks: recent.NewMap[uint32](maxForks, nil), perByte: perBytePrior}
}

// ReadTime is the time to read a prompt without any cached block, in seconds.
func (m *Model) ReadTime(p *Prompt) float64 { return m.perByte * p.Bytes }

// QueuedBehind is the number of prompts that will wait while one is read.
func (m *Model) QueuedBehind() float64 { return m.queued.mean }

// FirstPlaceHitRate is the share of bytes that prompts found at the first-ranked server because other sidecars had sent them.
func (m *Model) FirstPlaceHitRate() float64 { return m.hits.mean }

// learn observes that a prompt of that many bytes was read in took seconds. answer is the time that a response takes to start
// without reading. As with other fetches the model follows the median: no single prompt moves it far.
func (m *Model) learn(bytes, took, answer float64) {
	want := m.perByte * bytes
	step := math.Pow(perByteStep, want/(want+answer))
	if took < want {
		step = 1 / step
	}
	m.perByte = min(max(m.perByte*step, perByteMin), perByteMax)
}

// average is the mean of about the last 100 values.
type average struct{ mean, n float64 }

func (a *average) observe(value float64) {
	a.n++
	a.mean += (value - a.mean) / min(a.n, lately)
}

// Prompt is the data of one job.
type Prompt struct {
	blocks []intake.Part
	// Bytes is the size of all blocks.
	Bytes float64
	// Place is the key of the placing block: the project that policies see.
	Place uint64
	place int
}

// Prompt finds the placing block of a chain of blocks. It does not change the model.
func (m *Model) Prompt(blocks []intake.Part) *Prompt {
	p := &Prompt{blocks: blocks}
	for i := range blocks {
		p.Bytes += blocks[i].Bytes
		if i == 0 {
			continue
		}
		if after, known := m.forks.Get(blocks[i-1].Key); known && after != follower(blocks[i]) {
			p.place = i
		}
	}
	p.Place = blocks[p.place].Key
	return p
}

// Observe remembers which block followed which.
func (m *Model) Observe(p *Prompt) {
	for i := range p.blocks[1:] {
		key, next := p.blocks[i].Key, follower(p.blocks[i+1])
		if after, known := m.forks.Get(key); known && after != next {
			next = forked
		}
		m.forks.Put(key, next)
	}
}

// follower is what is kept of a block that follows another.
func follower(block intake.Part) uint32 { return max(forked+1, uint32(block.Key)) }
