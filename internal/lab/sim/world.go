package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
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
	seer     *clairvoyant // or nil
	asking   *job         // the job that a pool is asked for
	rng      *rand.Rand   // the fleet's stream
	polls    *rand.Rand   // that of when sidecars poll

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
	for i := range cfg.Fleet.Upstreams {
		s := newServer(fmt.Sprintf("rps-%02d:80", i), cfg.Fleet.Cores, int64(cfg.Fleet.Cache))
		w.servers = append(w.servers, s)
		w.byName[s.address] = i
	}
	if cfg.Clairvoyant {
		w.foresee()
	}
	for i := range cfg.Sidecars.Count {
		s, err := newSidecar(w, i)
		if err != nil {
			return nil, err
		}
		w.sidecars = append(w.sidecars, s)
	}
	w.startFleet()
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

// attempt sends a job to the upstream it was claimed for.
func (w *world) attempt(j *job, g dispatch.Grant) {
	j.assignment, j.sent = g.Assignment, w.now
	j.attempts++
	s := w.servers[w.byName[g.Assignment.Address]]
	refusing := !s.up || w.cfg.Fleet.Backlog > 0 && len(s.queue) > w.cfg.Fleet.Backlog
	switch {
	case !refusing:
		w.deliver(j, s)
	case w.cfg.Sidecars.ConnectTimeout < 0 && s.up: // the connection waits to be accepted
		w.events.add(w.now+time.Second, rankArrival, (*knock)(j))
	default:
		w.events.add(w.now+g.ConnectTimeout, rankTimeout, (*refusal)(j))
	}
}

func (w *world) deliver(j *job, s *server) {
	s.receive(w, j)
	if !j.ended {
		w.watch(j)
	}
}

// knock tries again to be accepted by a server that is too busy.
type knock job

func (k *knock) happen(w *world) {
	j := (*job)(k)
	s := w.servers[w.byName[j.assignment.Address]]
	switch {
	case w.now-j.arrived >= j.patience(w):
		j.assignment.Done(w.time(w.now), pool.TimedOut)
		w.end(j, Expired)
	case s.up && len(s.queue) <= w.cfg.Fleet.Backlog:
		w.deliver(j, s)
	case s.up:
		w.events.add(w.now+time.Second, rankArrival, k)
	default:
		(*refusal)(j).happen(w)
	}
}

// refusal is a connection that timed out.
type refusal job

func (r *refusal) happen(w *world) {
	f := dispatch.Failure{Outcome: pool.Refused, ConnectTimedOut: true}
	r.side.fail(w, (*job)(r), f, Unserved)
}

// glance is the longest time to the next look at a job. Most jobs have ended by
// then; without it every job would be kept until its time would have been over.
const glance = time.Minute

// watch plans to look after a job when its time at a server is over, or before
// that. Nothing is added to a look that is planned for no later instant.
func (w *world) watch(j *job) {
	if due := max(w.now, min(j.due(w), w.now+glance)); due < j.watched {
		j.watched = due
		w.events.add(due, rankTimeout, (*timeout)(j))
	}
}

// timeout is when the time of a job at a server may be over.
type timeout job

func (x *timeout) happen(w *world) {
	j := (*job)(x)
	if w.now != j.watched { // an earlier one was planned since
		return
	}
	j.watched = never
	s := j.server
	if j.ended || s == nil { // the next attempt is watched anew
		return
	}
	if j.due(w) > w.now {
		w.watch(j)
		return
	}
	s.abandon(j)
	switch now := w.time(w.now); {
	case j.heard >= 0:
		j.assignment.Done(now, pool.Gone)
		w.end(j, Overrun)
		j.side.serve(w)
	case j.begun < 0 && w.now >= j.arrived+j.patience(w):
		j.assignment.Done(now, pool.NotStarted)
		w.end(j, Expired)
		j.side.serve(w)
	default:
		f := dispatch.Failure{Outcome: pool.TimedOut, Progress: dispatch.Begun}
		if w.now-j.sent < j.dispatch.FirstByte/2 {
			f.Outcome = pool.Gone // the deadline left it too short a time
		}
		j.side.fail(w, j, f, Overrun)
	}
}

// due is when the time of a job at a server is over: that for the stream once
// its answer has begun, that for the first byte before, and its patience
// before it runs.
func (j *job) due(w *world) time.Duration {
	if j.heard >= 0 {
		if j.streamBound == 0 {
			return never
		}
		return j.heard + j.streamBound
	}
	due := j.sent + j.dispatch.FirstByte
	if deadline := j.dispatch.Deadline; !deadline.IsZero() {
		due = min(due, deadline.Sub(epoch))
	}
	if j.begun < 0 {
		due = min(due, j.arrived+j.patience(w))
	}
	return due
}

// patience is how long a job waits to be run.
func (j *job) patience(w *world) time.Duration {
	if j.queueBound > 0 {
		return j.queueBound
	}
	return w.cfg.Sidecars.Wait
}

// answered is the first byte of the answer.
func (w *world) answered(j *job) {
	if j.heard >= 0 {
		return
	}
	j.heard = w.now
	var hint *pool.Hint
	if w.cfg.Sidecars.Hints {
		s := j.server
		hint = &pool.Hint{
			At: w.time(w.now), Known: true, Cached: !j.fetches,
			Waited: j.begun - j.received, Fetched: -1,
		}
		for p := range selection.Priorities {
			hint.Running[p] = float64(s.jobs[p] - s.waiting[p])
			hint.Stalled[p] = float64(s.stalled[p])
		}
	}
	j.assignment.Answered(w.time(w.now), true, hint)
}

// finished is the last byte of the answer.
func (w *world) finished(j *job) {
	w.answered(j)
	j.assignment.Done(w.time(w.now), pool.Answered)
	w.end(j, Done)
	j.side.serve(w)
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
		Number: j.number, Priority: j.priority, Prefetch: j.kind == trace.Prefetch,
		Arrived: j.arrived, Work: j.load + j.sharedRules + j.operators + j.output, Attempts: j.attempts, Fetched: j.fetches, Outcome: o, Server: -1,
	}
	if j.assignment != nil {
		r.Server = w.byName[j.assignment.Address]
		r.Cache = j.assignment.Cache
	}
	r.Wait = w.now - j.arrived
	if j.begun >= 0 {
		r.Wait = j.begun - j.arrived
		r.Run = w.now - j.begun
	}
	w.cfg.Observe(&r)
	first := w.unfinished[j.number]
	delete(w.unfinished, j.number)
	if first == nil {
		return
	}
	for _, next := range first.jobs {
		next.side.submit(w, next)
	}
}

func (w *world) time(d time.Duration) time.Time { return epoch.Add(d) }

func (w *world) frozen() bool {
	s := &w.cfg.Sidecars
	return s.Freeze.For > 0 && w.now >= s.Freeze.At && w.now < s.Freeze.At+s.Freeze.For
}

// count completes the totals.
func (w *world) count() Totals {
	for _, s := range w.servers {
		s.account(w.now)
		w.totals.Fetches += s.fetches
		w.totals.Evictions += s.cache.evicted
		w.totals.CoreSeconds += s.coreSeconds
	}
	for _, s := range w.sidecars {
		w.totals.InFlight += s.pool.InFlight()
		w.totals.Waiting += s.dispatch.Waiting()
	}
	return w.totals
}

// sampler takes the figures over time.
type sampler struct{}

func (sampler) happen(w *world) {
	if w.over() {
		return
	}
	sample := Sample{At: w.now}
	for _, s := range w.servers {
		sample.Stalled = append(sample.Stalled, len(s.queue))
		sample.Busy = append(sample.Busy, s.busy)
		sample.Up = append(sample.Up, s.up)
		sample.Level = append(sample.Level, 1)
	}
	for _, u := range w.sidecars[0].pool.States(w.time(w.now)) {
		sample.Level[w.byName[u.Address]] = u.Level
	}
	for _, s := range w.sidecars {
		sample.Queued += s.dispatch.Waiting()
	}
	w.cfg.Sample(&sample)
	w.events.add(w.now+w.cfg.SampleEvery, rankReport, sampler{})
}
