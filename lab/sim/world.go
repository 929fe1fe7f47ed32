package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/lab/agenda"
	"example.org/pilotfish/lab/trace"
)

// epoch is the start time of every simulation; only differences matter.
var epoch = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

// The order of events at the same instant: events that free capacity come before events that need it.
const (
	rankFinish = iota
	rankFleet
	rankReport
	rankTimeout
	rankArrival
)

// world is the state of one run.
type world struct {
	cfg      Config
	now      time.Duration                        // time since the start of the trace
	events   agenda.Agenda[time.Duration, func()] // future events
	servers  []*server
	link     link           // shared by all servers
	byName   map[string]int // index of each server, by address
	sidecars []*sidecar
	polls    *rand.Rand // for the times of polls
	stops    *rand.Rand // for the times of stops
	messages *rand.Rand // for the delays and losses of requests to withdraw jobs
	probes   *rand.Rand // for the round trips of probes

	waiting   map[int64][]*job // by number of a job that has not ended: the jobs that depend on it
	exhausted bool             // the trace has no further jobs
	open      int              // jobs that have arrived and not ended
	totals    Totals
}

// Run simulates the trace until its last job has ended, until End, or until ctx
// is cancelled. The totals are valid in every case.
func Run(ctx context.Context, cfg Config) (Totals, error) {
	w := newWorld(cfg)
	err := w.loop(ctx)
	return w.count(), err
}

func newWorld(cfg Config) *world {
	w := &world{
		cfg:      cfg,
		byName:   make(map[string]int),
		polls:    rand.New(rand.NewPCG(cfg.Seed, 2)),
		stops:    rand.New(rand.NewPCG(cfg.Seed, 3)),
		messages: rand.New(rand.NewPCG(cfg.Seed, 5)),
		probes:   rand.New(rand.NewPCG(cfg.Seed, 4)),
		waiting:  make(map[int64][]*job),
	}
	w.newServers()
	for i := range cfg.Sidecars.Count {
		w.sidecars = append(w.sidecars, newSidecar(w, i))
	}
	w.startPolls()
	w.startFleet()
	if cfg.Sample != nil {
		w.sample()
	}
	if cfg.WarmUp > 0 {
		w.events.Add(cfg.WarmUp, rankFinish, w.endWarmUp)
	}
	return w
}

// sample calls Config.Look now and every LookEvery.
func (w *world) sample() {
	w.cfg.Sample(w.now, w.sidecars[0].pool.States(w.time(w.now)))
	w.events.Add(w.now+w.cfg.SampleEvery, rankReport, w.sample)
}

// loop runs the simulation: before each job of the trace, and after the last, it runs the events that are due.
func (w *world) loop(ctx context.Context) error {
	for t := range w.cfg.Source {
		if ctx.Err() != nil || !w.pass(trace.Duration(t.Offset)) {
			return ctx.Err()
		}
		w.arrival(&t)
	}
	w.exhausted = true
	w.pass(never)
	return nil
}

// pass runs the events that are due until an instant. It returns false if the run is over.
func (w *world) pass(until time.Duration) bool {
	for !w.over() {
		at, ok := w.events.Next()
		if !ok && w.exhausted {
			panic(fmt.Sprintf("BUG: sim: %d jobs are left without an event", w.open))
		}
		happens := ok && at <= until
		if w.now = until; happens {
			w.now = at
		}
		if w.cfg.End > 0 && w.now > w.cfg.End {
			return false
		}
		if !happens {
			return true
		}
		w.events.Take().What()
	}
	return false
}

// over reports whether all jobs have ended, so only periodic events are left.
func (w *world) over() bool { return w.exhausted && w.open == 0 }

// arrival submits a job of the trace to its sidecar, or holds it until the job that it depends on has ended.
func (w *world) arrival(t *trace.Job) {
	w.totals.Arrivals++
	w.open++
	j := newJob(t, int64(w.totals.Arrivals))
	j.side = w.sidecars[int(t.Submitter)%len(w.sidecars)]
	w.waiting[j.number] = nil
	first := int64(t.After) // lines count from 1
	if others, ok := w.waiting[first]; ok {
		w.waiting[first] = append(others, j)
		return
	}
	j.side.submit(w, j)
}

// end ends a job: it reports the result to Observe and submits the jobs that depend on it.
func (w *world) end(j *job, o Outcome) {
	if j.ended {
		panic("BUG: sim: a job ended twice")
	}
	j.ended = true
	if j.twin != nil {
		w.drop(j.twin, pool.Gone)
	}
	j.side.dispatch.CancelMove(w.time(w.now), j.dispatch)
	delete(j.side.jobs, j.dispatch)
	w.open--
	w.totals.Ended++
	if j.arrived >= w.cfg.WarmUp {
		w.cfg.Observe(w.result(j, o))
	}
	for _, next := range w.waiting[j.number] {
		// As a later event: the submitter must see the response first, so the free core goes to another job.
		w.events.Add(w.now, rankArrival, func() { next.side.submit(w, next) })
	}
	delete(w.waiting, j.number)
}

// result returns the result of a job that ends now.
func (w *world) result(j *job, o Outcome) *Result {
	lasted := w.now - j.arrived + j.earlier
	r := &Result{
		Number: j.number, Project: j.project, Priority: j.Priority, Prefetch: j.Prefetch,
		Arrived: j.arrived, Attempts: j.attempts, Fetched: j.fetches, Outcome: o, Server: -1,
		Wait: lasted, FirstByte: -1, LastByte: lasted,
	}
	if j.server != nil {
		r.Server = w.byName[j.server.address]
	}
	if j.begun >= 0 {
		r.Wait, r.Run = j.begun-j.arrived+j.earlier, w.now-j.begun
		r.Stalled = max(0, r.Run-j.ran)
	}
	if j.answering >= 0 {
		r.FirstByte, r.Completeness = j.answering-j.arrived+j.earlier, intake.Partial
	}
	switch o {
	case Done:
		r.Completeness = intake.Complete
	case Failed: // with a complete error response
		r.FirstByte, r.Completeness = lasted, intake.Complete
		fallthrough
	case Unserved, Lost, Left:
		r.Wait, r.Run, r.Stalled = max(lasted, j.queueTimeout(w)), 0, 0
	}
	return r
}

func (w *world) time(d time.Duration) time.Time { return epoch.Add(d) }

// endWarmUp resets the counters, so the warm-up is not measured.
func (w *world) endWarmUp() {
	w.totals.Reports, w.totals.Stops = 0, 0
	for _, s := range w.servers {
		s.account(w.now)
		s.fetches, s.coreSeconds, s.evicted = 0, 0, 0
	}
}

// count completes the totals.
func (w *world) count() Totals {
	for _, s := range w.servers {
		s.account(w.now)
		w.totals.Fetches += s.fetches
		w.totals.Evictions += s.evicted
		w.totals.CoreSeconds += s.coreSeconds
	}
	for _, s := range w.sidecars {
		w.totals.InFlight += s.pool.InFlight()
		w.totals.Waiting += s.dispatch.Waiting()
	}
	end := w.now
	if w.cfg.End > 0 {
		end = min(end, w.cfg.End)
	}
	w.totals.Length = max(0, end-w.cfg.WarmUp)
	return w.totals
}
