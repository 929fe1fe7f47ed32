package prompts

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/hash"
	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/lab/trace"
	"example.org/pilotfish/pkg/selection"
)

// pilotfish is a sidecar: the real dispatcher, pool and policy.
type pilotfish struct {
	*rule
	rng      *rand.Rand
	dispatch *dispatch.Dispatcher
	pool     *pool.Pool
	servers  map[string]int
}

// open is the circuit breaker of a server that never fails.
func open() (func(error), error) { return func(error) {}, nil }

// must returns the value of a call that cannot fail.
func must[T any](value T, err error) T {
	if err != nil {
		panic("BUG: prompts: " + err.Error())
	}
	return value
}

func (w *world) newPilotfish(number int) *pilotfish {
	rng, interval := rand.New(rand.NewPCG(w.seed, uint64(1000+number))), cmp.Or(w.rule.interval, time.Second)
	p := &pilotfish{rule: w.rule, rng: rng, servers: map[string]int{}}
	p.pool = must(pool.New(pool.Config{
		Settings: pool.Settings{
			Policy: selection.DefaultExpected(), Detector: must(overload.Default().Detector()), Interval: interval, Breaker: health.Default(),
		},
		Gate: func(func(int) bool) health.Gate { return open },
		Rand: rng,
	}))
	var upstreams []pool.Upstream
	for i := range w.servers {
		u := pool.Upstream{Address: fmt.Sprintf("10.%d.0.%d:8000", w.seed, i), Cores: 1}
		p.servers[u.Address] = i
		upstreams = append(upstreams, u)
		if first := time.Duration(rng.Int64N(int64(interval))); w.rule.interval > 0 {
			w.events.Add(first, 0, func() { p.poll(w, u.Address, counts{}) })
		}
		if w.rule.events {
			p.subscribe(w, w.servers[i], u.Address)
		}
	}
	p.pool.Set(epoch, upstreams)
	p.dispatch = must(dispatch.New(dispatch.Config{
		Pool: p.pool, Rand: rng, Retry: dispatch.DefaultRetry(), Queue: dispatch.QueueSettings{Jobs: 1 << 20, Bytes: 1 << 40, Wait: time.Hour},
	}))
	return p
}

// poll reads a server's metrics as vLLM exposes them, and schedules the next poll. before is the result of the previous poll.
func (p *pilotfish) poll(w *world, address string, before counts) {
	s := w.servers[p.servers[address]]
	r := pool.Report{At: w.time(), CoresBusy: -1, Begun: float64(s.answered), Completed: float64(s.done), Failed: -1, Wait: math.NaN(), Read: 4 * float64(s.taken)}
	r.Running[selection.Low], r.Stalled[selection.Low] = float64(s.running()), float64(s.stalled())
	if n := s.begun - before.begun; n > 0 {
		r.Wait = (s.waited - before.waited).Seconds() / float64(n)
	}
	p.pool.Report(w.time(), address, r)
	seen := s.counts
	w.events.Add(w.now+time.Duration((0.8+0.4*p.rng.Float64())*float64(p.interval)), 0, func() { p.poll(w, address, seen) })
}

func (p *pilotfish) pick(w *world, j *job) int {
	g, granted := p.dispatch.Arrive(w.time(), p.dispatch.Begin(p.request(w, j)))
	if !granted || g.Err != nil {
		panic("BUG: prompts: there is no server for a job")
	}
	j.grant = g.Assignment
	return p.servers[g.Assignment.Address]
}

// blockBytes is the size of a block in a request: tokens have about four bytes.
const blockBytes = 4 * trace.BlockTokens

func (p *pilotfish) request(w *world, j *job) dispatch.Request {
	r := dispatch.Request{Arrived: w.time()}
	if p.blocks > 0 {
		r.Project = key(j.Blocks[:min(len(j.Blocks), p.blocks)])
		return r
	}
	if full := j.full(); len(full) > 0 {
		r.Data = &intake.Parts{}
		for _, b := range full {
			r.Data.Parts = append(r.Data.Parts, intake.Part{Key: key([]int64{b}), Bytes: blockBytes})
		}
		r.Project = r.Data.Parts[0].Key
	}
	return r
}

// key hashes blocks.
func key(blocks []int64) (k uint64) {
	for _, b := range blocks {
		k = hash.Pair(k, uint64(b+1))
	}
	return k
}

func (p *pilotfish) answered(w *world, j *job) {
	if p.interval == 0 { // no reports, and no load in responses
		j.grant.Answered(w.time(), true, nil)
		return
	}
	hint := &pool.Hint{At: w.time(), Utilization: -1, CoresBusy: -1, Waited: -1, Fetched: -1}
	hint.Running[selection.Low], hint.Stalled[selection.Low] = -1, float64(w.servers[j.server].stalled())
	j.grant.Answered(w.time(), true, hint)
}

func (p *pilotfish) ended(w *world, j *job) {
	if full := j.full(); len(full) > 0 { // as the response's usage states
		j.grant.Found(float64(j.found) / float64(len(full)))
	}
	j.grant.Done(w.time(), pool.Answered)
}
