// Package prompts simulates servers of a language model and routers in front of them. A server reads what it has not
// cached of a prompt, one prompt at a time, and generates responses concurrently. Routers choose the server: pilotfish's real
// dispatcher and pool, or the rules of other routers.
package prompts

import (
	"math"
	"math/rand/v2"
	"time"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/lab/agenda"
	"example.org/pilotfish/lab/trace"
)

// epoch is when every run begins; only differences matter.
var epoch = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

// config configures one run.
type config struct {
	jobs []trace.Job
	// servers is the number of servers. Each reads rate tokens per second, and caches blocks blocks.
	servers int
	rate    float64
	blocks  int
	// routers is the number of routers, each with its own state; a prompt arrives at one at random.
	routers int
	rule    *rule
	// spread is the resolution of the trace's times: a prompt arrives at a random instant of this interval.
	spread time.Duration
	seed   uint64
}

// result is the outcome of a prompt. Times are in seconds.
type result struct {
	offset float64 // of the job
	first  float64 // time to the first token
	found  int     // blocks that were cached
	blocks int
}

// job is a prompt that is being served. Its submitter is the chat that it continues.
type job struct {
	*trace.Job
	arrived time.Duration
	router  router
	server  int
	found   int   // blocks that were cached
	unread  int64 // tokens that were not cached when the router chose the server

	grant *pool.Assignment // of pilotfish
}

// full is the full blocks: only they are cached.
func (j *job) full() []int64 { return j.Blocks[:min(int64(len(j.Blocks)), j.Read/trace.BlockTokens)] }

// rule is how routers choose.
type rule struct {
	name string
	// blocks is the number of blocks that make pilotfish's key; 0 uses the chain of all blocks. interval is the interval of its
	// polls; 0 makes no polls and reads no load from responses.
	blocks   int
	interval time.Duration
	// costs fills in the cost of each server for a rival, which chooses one with the lowest cost; nil is pilotfish.
	costs func(r *rival, w *world, j *job, costs []float64)
	// events is set if routers receive the events of every cache. lost is the share of the events that pilotfish misses.
	events bool
	lost   float64
}

// rules returns the rules to compare, pilotfish with chains first. Rivals have their defaults.
func rules() []*rule {
	return []*rule{
		{name: "expected", interval: time.Second / 4},
		{name: "expected, 1 s", interval: time.Second},
		{name: "expected, no reports"},
		{name: "expected, events", interval: time.Second / 4, events: true},
		{name: "expected 1 block", blocks: 1, interval: time.Second},
		{name: "expected 2 blocks", blocks: 2, interval: time.Second},
		{name: "expected 4 blocks", blocks: 4, interval: time.Second},
		{name: "round-robin", costs: roundRobin},
		{name: "least-requests", costs: leastRequests},
		{name: "session-hash", costs: sessionHash},
		{name: "sglang", costs: sglang},
		{name: "llm-d", costs: llmd, events: true},
		{name: "llm-d approximate", costs: llmd},
		{name: "dynamo", costs: dynamo, events: true},
	}
}

// allKnown is a bound on rules that choose for one prompt at a time and do not know future prompts.
var allKnown = &rule{name: "all known", costs: knowsAll}

// noWait is a bound on every rule: each prompt is read at once, and all earlier prompts are cached.
var noWait = &rule{name: "no wait"}

func playWithoutWait(cfg config) (results []result) {
	one := &server{rate: cfg.rate, kept: &cache{limit: math.MaxInt}}
	for i := range cfg.jobs {
		j := &job{Job: &cfg.jobs[i]}
		left := one.missing(j)
		one.kept.put(j.full())
		results = append(results, result{j.Offset, startup.Seconds() + float64(left)/one.rate, int((j.Read - left) / trace.BlockTokens), len(j.Blocks)})
	}
	return results
}

// router chooses a server for each prompt that arrives at it, and sees the responses to these prompts.
type router interface {
	pick(w *world, j *job) (server int)
	answered(w *world, j *job) // at the first token
	ended(w *world, j *job)
}

// world is the state of one run.
type world struct {
	config
	rng     *rand.Rand
	now     time.Duration
	events  agenda.Agenda[time.Duration, func()]
	servers []*server
	results []result
}

// play simulates the prompts, and returns their results in the order of the first tokens.
func play(cfg config) []result {
	if cfg.rule == noWait {
		return playWithoutWait(cfg)
	}
	w := &world{config: cfg, rng: rand.New(rand.NewPCG(cfg.seed, 1))}
	for range cfg.servers {
		w.servers = append(w.servers, &server{rate: cfg.rate, kept: &cache{limit: cfg.blocks}})
	}
	routers := make([]router, cfg.routers)
	for i := range routers {
		if cfg.rule.costs != nil {
			routers[i] = w.newRival(uint64(2+i), w.rng.IntN(len(w.servers)))
		} else {
			routers[i] = w.newPilotfish(i)
		}
	}
	for i := range cfg.jobs {
		j := &job{Job: &cfg.jobs[i], router: routers[w.rng.IntN(len(routers))]}
		j.arrived = trace.Duration(j.Offset) + time.Duration(w.rng.Float64()*float64(cfg.spread))
		w.events.Add(j.arrived+w.rule.tokenize(j), 0, func() {
			j.server = j.router.pick(w, j)
			w.servers[j.server].receive(w, j)
		})
	}
	for len(w.results) < len(cfg.jobs) {
		next := w.events.Take()
		w.now = next.At
		next.What()
	}
	return w.results
}

func (w *world) time() time.Time { return epoch.Add(w.now) }
