package prompts

import (
	"math/rand/v2"
	"slices"
	"time"

	"example.org/pilotfish/internal/hash"
	"example.org/pilotfish/lab/trace"
	"example.org/pilotfish/pkg/selection"
)

func roundRobin(r *rival, _ *world, _ *job, costs []float64) {
	costs[r.turn%len(costs)] = -1
	r.turn++
}

func leastRequests(r *rival, _ *world, _ *job, costs []float64) {
	for i := range costs {
		costs[i] = float64(r.own[i].open)
	}
}

func sessionHash(_ *rival, _ *world, j *job, costs []float64) {
	for i := range costs {
		costs[i] = float64(hash.Pair(hash.Mix(uint64(j.Submitter)), uint64(i)) >> 12)
	}
}

// sglang is SGLang's cache_aware. If the numbers of open requests differ by more than 32 and by a factor of more than 1.0001, it
// chooses the server with the fewest. Otherwise it chooses the server that was sent the longest prefix, if that is more than half of
// the prompt, or else the server with the smallest tree.
func sglang(r *rival, w *world, j *job, costs []float64) {
	lowest, highest, best := r.own[0].open, 0, 0
	for i := range costs {
		lowest, highest = min(lowest, r.own[i].open), max(highest, r.own[i].open)
		match := r.own[i].sent.match(j.Blocks)
		costs[i], best = -float64(match), max(best, match)
	}
	switch {
	case highest-lowest > 32 && float64(highest) > 1.0001*float64(lowest):
		leastRequests(r, w, j, costs)
	case 2*best <= len(j.Blocks):
		for i := range costs {
			costs[i] = float64(r.own[i].sent.n)
		}
	}
}

// llmd is llm-d's prefix scorers: weight 3 for the share of the prompt that a server has cached, and weight 2 for the position of its
// queue between the longest and the shortest one, polled every 50 ms. The precise scorer uses events of the caches, the approximate
// one the prompts that this router has sent.
func llmd(r *rival, w *world, j *job, costs []float64) {
	if w.now-r.polled >= 50*time.Millisecond || r.queues == nil {
		r.polled, r.queues = w.now, r.queues[:0]
		for _, s := range w.servers {
			r.queues = append(r.queues, float64(s.stalled()))
		}
	}
	lowest, highest := slices.Min(r.queues), slices.Max(r.queues)
	for i := range costs {
		held := r.own[i].sent
		if w.rule.events {
			held = w.servers[i].kept
		}
		costs[i] = -3 * float64(held.match(j.Blocks)) / float64(max(len(j.Blocks), 1))
		if highest > lowest {
			costs[i] -= 2 * (highest - r.queues[i]) / (highest - lowest)
		}
	}
}

// dynamo is Dynamo's cost, in blocks: blocks to read, plus blocks in use, of this prompt and of those that this router has sent. It
// uses events of the caches.
func dynamo(r *rival, w *world, j *job, costs []float64) {
	for i := range costs {
		own := &r.own[i]
		costs[i] = float64(own.unread+w.servers[i].missing(j))/trace.BlockTokens + float64(own.active+len(j.Blocks))
	}
}

// knowsAll is the cost of a bound: the exact time at which each server will have read the prompt.
func knowsAll(_ *rival, w *world, j *job, costs []float64) {
	for i, s := range w.servers {
		costs[i] = s.end(w.now, j)
	}
}

// rival is a router of another project.
type rival struct {
	rng    *rand.Rand
	turn   int
	own    []own     // by server
	queues []float64 // as polled
	polled time.Duration
}

// own is the state of a router's own jobs at a server.
type own struct {
	open   int
	unread int64 // tokens
	active int   // blocks of open jobs
	sent   *cache
}

// treeBlocks is the default size of SGLang's tree, 2^24 characters for each server, in blocks of 2 KiB.
const treeBlocks = 8192

// newRival is a router whose first turn is at one of the servers.
func (w *world) newRival(stream uint64, turn int) *rival {
	r := &rival{rng: rand.New(rand.NewPCG(w.seed, stream)), turn: turn}
	for range w.servers {
		r.own = append(r.own, own{sent: &cache{limit: treeBlocks}})
	}
	return r
}

func (r *rival) pick(w *world, j *job) int {
	var least selection.Least
	costs := make([]float64, len(w.servers))
	w.rule.costs(r, w, j, costs)
	for i, cost := range costs {
		least.Offer(i, cost, r.rng)
	}
	at := least.Index()
	o := &r.own[at]
	j.unread = w.servers[at].missing(j)
	o.open++
	o.unread += j.unread
	o.active += len(j.Blocks)
	o.sent.put(j.Blocks)
	return at
}

func (r *rival) answered(_ *world, j *job) { r.own[j.server].unread -= j.unread }

func (r *rival) ended(_ *world, j *job) {
	r.own[j.server].open--
	r.own[j.server].active -= len(j.Blocks)
}
