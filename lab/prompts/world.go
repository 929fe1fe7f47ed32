// Package prompts plays prompts to servers of a language model. A server reads what it has not kept, one prompt
// at a time, and writes answers together. Routers choose the servers: pilotfish's real dispatcher and pool, or
// the rules of other routers.
package prompts

import (
	"container/heap"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// epoch is when every run begins; only differences matter.
var epoch = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

// Config is one run.
type Config struct {
	Jobs Jobs
	// Servers is how many there are. Each reads Rate tokens per second, and keeps Blocks blocks.
	Servers int
	Rate    float64
	Blocks  int
	// Routers is how many there are, each with a view of its own; a job comes to one at random. Rule is how they choose.
	Routers int
	Rule    string
	// Spread is how coarse the trace's times are: a job comes at a random instant of so long a time.
	Spread time.Duration
	Seed   uint64
}

// Result is what came of a job. Times are in seconds.
type Result struct {
	Offset float64 // of the job
	First  float64 // time to the first token
	Found  int     // blocks that the server had kept
	Blocks int
}

// job is a prompt on its way.
type job struct {
	Job
	arrived time.Duration
	router  router
	server  int
	found   int // blocks that the server had kept
}

// router chooses a server for each job that comes to it, and sees its own answers.
type router interface {
	pick(w *world, j *job) (server int, err error)
	answered(w *world, j *job) // the first token
	ended(w *world, j *job)
}

// world is one run.
type world struct {
	cfg     Config
	rng     *rand.Rand
	now     time.Duration
	events  events
	servers []*server
	results []Result
}

// Play plays the jobs, and returns what came of each in the order of the first tokens.
func Play(cfg Config) ([]Result, error) {
	if cfg.Servers < 1 || cfg.Routers < 1 || !(cfg.Rate > 0) || cfg.Blocks < 1 {
		return nil, errors.New("prompts: servers, routers, rate and blocks must be above 0")
	}
	w := &world{cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 1))}
	for range cfg.Servers {
		w.servers = append(w.servers, &server{rate: cfg.Rate, kept: newCache(cfg.Blocks)})
	}
	routers := make([]router, cfg.Routers)
	for i := range routers {
		var err error
		if routers[i], err = w.newRouter(i); err != nil {
			return nil, err
		}
	}
	var fault error
	for i := range cfg.Jobs {
		j := &job{Job: cfg.Jobs[i], router: routers[w.rng.IntN(len(routers))]}
		w.at(duration(j.Offset)+time.Duration(w.rng.Float64()*float64(cfg.Spread)), func() {
			j.arrived = w.now
			var err error
			if j.server, err = j.router.pick(w, j); err != nil {
				fault = fmt.Errorf("prompts: job %d: %w", i+1, err)
				return
			}
			w.servers[j.server].receive(w, j)
		})
	}
	for len(w.results) < len(cfg.Jobs) && fault == nil {
		next := heap.Pop(&w.events).(event)
		w.now = next.at
		next.do()
	}
	return w.results, fault
}

func (w *world) time() time.Time { return epoch.Add(w.now) }

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// at plans what happens at an instant.
func (w *world) at(at time.Duration, do func()) {
	w.events.seq++
	heap.Push(&w.events, event{at, w.events.seq, do})
}

type event struct {
	at  time.Duration
	seq int // what was planned first comes first
	do  func()
}

// events is a heap by time.
type events struct {
	all []event
	seq int
}

func (e *events) Len() int { return len(e.all) }
func (e *events) Less(i, k int) bool {
	a, b := &e.all[i], &e.all[k]
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}
func (e *events) Swap(i, k int) { e.all[i], e.all[k] = e.all[k], e.all[i] }
func (e *events) Push(x any)    { e.all = append(e.all, x.(event)) }
func (e *events) Pop() any {
	last := e.all[len(e.all)-1]
	e.all = e.all[:len(e.all)-1]
	return last
}
