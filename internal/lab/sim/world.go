package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/pkg/trace"
)

// epoch is when every simulation begins; only differences matter.
var epoch = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

// world is one run.
type world struct {
	cfg      Config
	now      time.Duration
	events   events
	servers  []*server
	byName   map[string]int
	sidecars []*sidecar
	asking   *job       // the job that a pool is asked for
	rng      *rand.Rand // the fleet's stream
	polls    *rand.Rand // that of when sidecars poll

	unfinished map[int64]*after // by line: jobs that others may wait for
	exhausted  bool
	open       int // arrived and not ended
	totals     Totals
}

// after is a job that has not ended, and those that wait for it.
type after struct{ jobs []*job }

// Run plays the trace through the sidecars until its last job has ended, or
// End, or ctx ends; the totals are valid in every case.
func Run(ctx context.Context, cfg Config) (Totals, error) {
	w, err := newWorld(cfg)
	if err != nil {
		return Totals{}, err
	}
	err = w.loop(ctx)
	return w.count(), err
}

func newWorld(cfg Config) (*world, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	w := &world{
		cfg:        cfg,
		byName:     make(map[string]int),
		rng:        rand.New(rand.NewPCG(cfg.Seed, 1)),
		polls:      rand.New(rand.NewPCG(cfg.Seed, 2)),
		unfinished: make(map[int64]*after),
	}
	w.newServers()
	if cfg.Clairvoyant {
		w.cfg.Policy = newClairvoyant(w)
	}
	for i := range cfg.Sidecars.Count {
		s, err := newSidecar(w, i)
		if err != nil {
			return nil, err
		}
		w.sidecars = append(w.sidecars, s)
	}
	w.startPolls()
	w.startFleet()
	if cfg.WarmUp > 0 {
		w.events.add(cfg.WarmUp, rankFinish, warmUpEnd{})
	}
	if cfg.Sample != nil {
		w.events.add(cfg.SampleEvery, rankReport, sampler{})
	}
	return w, nil
}

// loop alternates between the trace and the heap, whichever is due first.
func (w *world) loop(ctx context.Context) error {
	next, number, err := w.read(0)
	if err != nil {
		return err
	}
	for steps := 0; ; steps++ {
		if steps%65536 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if w.exhausted && w.open == 0 {
			return nil
		}
		at, ok := w.events.next()
		if !w.exhausted && (!ok || duration(next.Offset) < at) {
			w.now = duration(next.Offset)
			if w.ended() {
				return nil
			}
			w.arrival(&next, number)
			if next, number, err = w.read(number); err != nil {
				return err
			}
			continue
		}
		if !ok {
			return fmt.Errorf("sim: %d jobs are left without an event: BUG", w.open)
		}
		w.now = at
		if w.ended() {
			return nil
		}
		w.events.pop().what.happen(w)
	}
}

func (w *world) ended() bool { return w.cfg.End > 0 && w.now > w.cfg.End }

// over reports whether nothing is left to do but what repeats for ever.
func (w *world) over() bool { return w.exhausted && w.open == 0 }

func (w *world) read(number int64) (trace.Job, int64, error) {
	t, err := w.cfg.Source.Next()
	if errors.Is(err, io.EOF) {
		w.exhausted, err = true, nil
	}
	return t, number + 1, err
}

// arrival lets a job of the trace come to its sidecar, or wait for the job
// that it depends on.
func (w *world) arrival(t *trace.Job, number int64) {
	j := newJob(t, number)
	j.side = w.sidecars[int(t.Submitter)%len(w.sidecars)]
	w.totals.Arrivals++
	w.open++
	w.unfinished[number] = nil
	if first, ok := w.unfinished[int64(t.After)]; ok && t.After != 0 {
		if first == nil {
			first = &after{}
			w.unfinished[int64(t.After)] = first
		}
		first.jobs = append(first.jobs, j)
		return
	}
	j.side.submit(w, j)
}

// end observes a job and lets those come that waited for it.
func (w *world) end(j *job, o Outcome) {
	if j.ended {
		panic("BUG: sim: a job ended twice")
	}
	j.ended = true
	delete(j.side.jobs, j.dispatch)
	w.open--
	w.totals.Ended++
	r := Result{
		Number: j.number, Project: j.project, Priority: j.priority, Prefetch: j.kind == trace.Prefetch,
		Arrived: j.first, Work: j.load + j.sharedRules + j.operators + j.output, Attempts: j.attempts, Fetched: j.fetches, Outcome: o, Server: -1,
	}
	if j.server != nil {
		r.Server = w.byName[j.server.address]
		r.Cache = j.assignment.Cache
		r.Load, r.Expected = j.load, duration(j.assignment.Fetch)
	}
	r.FirstByte, r.LastByte = -1, w.now-j.first
	if j.heard >= 0 {
		r.FirstByte, r.Completeness = j.heard-j.first, intake.Partial
	}
	switch o {
	case Done:
		r.Completeness = intake.Complete
	case Failed: // with an answer that says so
		r.FirstByte, r.Completeness = r.LastByte, intake.Complete
	}
	switch {
	case o == Failed || o == Unserved || o == Lost || o == Shed:
		r.Wait = max(w.now-j.first, j.patience(w))
	case j.begun >= 0:
		r.Wait = j.begun - j.first
		r.Run = w.now - j.begun
	default:
		r.Wait = w.now - j.first
	}
	if r.Arrived >= w.cfg.WarmUp {
		w.cfg.Observe(&r)
	}
	first := w.unfinished[j.number]
	delete(w.unfinished, j.number)
	if first == nil {
		return
	}
	for _, next := range first.jobs {
		w.events.add(w.now, rankArrival, (*sequel)(next))
	}
}

// sequel is the arrival of a job that waited for another one. It comes after the
// server has given the other's core away: its submitter must first see the response.
type sequel job

func (n *sequel) happen(w *world) { n.side.submit(w, (*job)(n)) }

func (w *world) time(d time.Duration) time.Time { return epoch.Add(d) }

func (w *world) frozen() bool {
	s := &w.cfg.Sidecars
	return s.Freeze.For > 0 && w.now >= s.Freeze.At && w.now < s.Freeze.At+s.Freeze.For
}

// warmUpEnd forgets what servers did before.
type warmUpEnd struct{}

func (warmUpEnd) happen(w *world) {
	w.totals.Reports, w.totals.Stops = 0, 0
	for _, s := range w.servers {
		s.account(w.now)
		s.fetches, s.coreSeconds, s.evicted = 0, 0, -s.cache.evicted
	}
}

// count completes the totals.
func (w *world) count() Totals {
	for _, s := range w.servers {
		s.account(w.now)
		w.totals.Fetches += s.fetches
		w.totals.Evictions += s.evicted + s.cache.evicted
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
