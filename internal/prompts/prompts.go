// Package prompts models servers of language models: which part of a prompt each server has cached, and how long it
// reads (prefills) before it starts to respond. Only jobs whose data is text in blocks use it.
//
// A prompt is a chain of blocks. The key of a block also hashes all text before it, so two prompts share exactly the
// blocks of their common prefix:
//
//	system prompt ── tools ─┬─ chat 1 ── turn 1 ── turn 2
//	                        └─ chat 2 ── turn 1
//	                        ^ a fork: two blocks followed this one
//
// A server can use the blocks that it has cached from the first one on: the prefix hit. It reads (prefills) the rest, one
// prompt at a time.
//
//	     Send              Answered
//	idle ────> queued, read ────────> answering: no longer in the queue
//	                │ Ended: no response
//	                └──────> gone: blocks that the server may not have received no longer count as cached
//
// Invariants:
//
//   - A hit is a prefix: blocks after the first missing one do not count.
//   - A prompt is placed by one block, whose key policies see as the project: the block after the deepest fork, or the first block
//     if there is no fork. So the turns of a chat stay together in all sidecars, and the chats of one template spread out.
//   - If the server's events have named a block, the last such event says whether it is cached. Otherwise the block counts as
//     cached from when it was sent to the server until its lifetime is over.
//   - The wait of a queue is at least the reading time of this sidecar's own unread prompts, and 0 if no prompt is unread.
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
	// maxForks is the maximum number of blocks whose follower is remembered, to find forks: about 4 MB.
	maxForks = 1 << 17
	// forked replaces the follower of a block that different blocks have followed.
	forked = 1
	// averagedPrompts is the number of prompts over which averages are taken.
	averagedPrompts = 100

	// The time to read a byte, in seconds: the initial estimate and its bounds. It stands for about 8,000 tokens of
	// four bytes per second. One prompt changes the estimate by at most a tenth (perByteStep).
	perBytePrior, perByteMin, perByteMax = 3e-5, 1e-10, 1e-4
	perByteStep                          = 1.1
)

// Model holds the estimates that a sidecar has learned from the prompts that it sent to any server.
type Model struct {
	forks   *recent.Map[uint32] // by block: the block that followed it, or forked
	perByte float64             // time to read a byte, in seconds
	reads   average             // time to read the uncached part of a prompt, in seconds
	queued  average             // prompts queued ahead of a new one; on average as many queue up behind it (Little's law)
	hits    average             // see FirstPlaceHitRate
}

// NewModel returns a model that has seen no prompt.
func NewModel() *Model {
	return &Model{forks: recent.NewMap[uint32](maxForks, nil), perByte: perBytePrior}
}

// ReadTime is the time to read a prompt without any cached block, in seconds.
func (m *Model) ReadTime(p *Prompt) float64 { return m.perByte * p.Bytes }

// QueuedBehind is the number of prompts that will wait while one is read.
func (m *Model) QueuedBehind() float64 { return m.queued.mean }

// FirstPlaceHitRate is a cache hit rate at first-ranked servers: of the bytes that this sidecar had not sent there, the
// share that was cached because other sidecars had sent it.
func (m *Model) FirstPlaceHitRate() float64 { return m.hits.mean }

// learn updates the time to read a byte from a response that took that many seconds to start, for that many bytes.
// usual is the usual time to first byte without reading: the longer it is compared with the reading time, the smaller
// the step. Steps are bounded, so the estimate follows the median.
func (m *Model) learn(bytes, took, usual float64) {
	want := m.perByte * bytes
	step := math.Pow(perByteStep, want/(want+usual))
	if took < want {
		step = 1 / step
	}
	m.perByte = min(max(m.perByte*step, perByteMin), perByteMax)
}

// average is the mean of about the last 100 values.
type average struct{ mean, n float64 }

func (a *average) observe(value float64) {
	a.n++
	a.mean += (value - a.mean) / min(a.n, averagedPrompts)
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

// follower returns the stored form of a block that follows another.
func follower(block intake.Part) uint32 { return max(forked+1, uint32(block.Key)) }
