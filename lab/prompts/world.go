// Package prompts plays prompts to servers of a language model. A server reads what it has not kept, one prompt
// at a time, and writes answers together. Routers choose the servers: pilotfish's real dispatcher and pool, or
// the rules of other routers.
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

// config is one run.
type config struct {
	jobs []trace.Job
	// servers is how many there are. Each reads rate tokens per second, and keeps blocks blocks.
	servers int
	rate    float64
	blocks  int
	// routers is how many there are, each with a view of its own; a job comes to one at random.
	routers int
	rule    *rule
	// spread is how coarse the trace's times are: a job comes at a random instant of so long a time.
	spread time.Duration
	seed   uint64
}

// result is what came of a job. Times are in seconds.
type result struct {
	offset float64 // of the job
	first  float64 // time to the first token
	found  int     // blocks that the server had kept
	blocks int
}

// job is a prompt on its way. Its submitter is the chat that it goes on with.
type job struct {
	*trace.Job
	arrived time.Duration
	router  router
	server  int
	found   int   // blocks that the server had kept
	unread  int64 // tokens that the server had not kept when the router chose it

	grant *pool.Assignment // of pilotfish
}

// full is the blocks that are full: only they are kept.
func (j *job) full() []int64 { return j.Blocks[:min(int64(len(j.Blocks)), j.Read/trace.BlockTokens)] }

// rule is how routers choose.
type rule struct {
	name string
	// Pilotfish's key is this many blocks of a prompt, or a chain of all blocks if 0. It polls servers at this interval; if
	// 0, it gets no reports, and no load with answers.
	blocks   int
	interval time.Duration
	// Another's fills in a cost for each server, and one with the least is taken.
	costs  func(r *rival, w *world, j *job, costs []float64)
	events bool // it knows by events what each server holds
}

// rules are all that are compared, pilotfish's over chains first. The others have their defaults.
func rules() []*rule {
	return []*rule{
		{name: "expected", interval: time.Second / 4},
		{name: "expected, 1 s", interval: time.Second},
		{name: "expected, no reports"},
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

// allKnown is a bound on rules that choose for one prompt after the other, and do not know those that are to come.
var allKnown = &rule{name: "all known", costs: knowsAll}

// noWait is no rule but a bound: each prompt is read at once, without what any before it had. No router does better.
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

// router chooses a server for each job that comes to it, and sees its own answers.
type router interface {
	pick(w *world, j *job) (server int)
	answered(w *world, j *job) // the first token
	ended(w *world, j *job)
}

// world is one run.
type world struct {
	config
	rng     *rand.Rand
	now     time.Duration
	events  agenda.Agenda[time.Duration, func()]
	servers []*server
	results []result
}

// play plays the jobs, and returns what came of each in the order of the first tokens.
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
		w.events.Add(j.arrived, 0, func() {
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
