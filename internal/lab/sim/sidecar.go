package sim

import (
	"errors"
	"math/rand/v2"
	"time"

	"example.org/pilotfish/internal/admission"
	"example.org/pilotfish/internal/breaker"
	"example.org/pilotfish/internal/pool"
)

// sidecar is one submitter's pilotfish: the real pool and admission, and the
// retry rules of the proxy.
type sidecar struct {
	pool  *pool.Pool
	queue *admission.Queue
	rng   *rand.Rand
	jobs  map[*admission.Entry]*job
	polls []poll

	serving bool // a job that ends at once must not serve the queue within itself
}

// waiting is a job's place in the sidecar's queue.
type waiting struct{ admission.Entry }

// poll is one sidecar's polling of one server, and what it remembers of it.
type poll struct {
	side    *sidecar
	server  *server
	listing listing

	begun, completed     int
	waitSum, responseSum float64
}

func newSidecar(w *world, number int) (*sidecar, error) {
	s := &sidecar{
		rng:  rand.New(rand.NewPCG(w.cfg.Seed, 1000+uint64(number))),
		jobs: make(map[*admission.Entry]*job),
	}
	// Modelled servers fail by going away, which the retry sees at once: so many
	// failures in a row that no breaker opens.
	guarded := breaker.Default()
	guarded.Failures = 1_000_000
	breakers, err := breaker.New(breaker.Config{
		Settings: guarded,
		Rand:     rand.New(rand.NewPCG(w.cfg.Seed, 1_000_000+uint64(number))),
	})
	if err != nil {
		return nil, err
	}
	s.pool, err = pool.New(pool.Config{
		Policy:   w.cfg.Sidecar.Policy,
		Detector: w.cfg.Sidecar.Detector,
		Breakers: breakers,
		Rand:     s.rng,
		Interval: w.cfg.Sidecar.Interval,
		Hold:     -1, // a job that loses patience is no refusal
	})
	if err != nil {
		return nil, err
	}
	// As wide as the day is long: the experiments shed nothing.
	s.queue, err = admission.New(admission.Config{Jobs: 1 << 30, Bytes: 1 << 50})
	s.polls = make([]poll, len(w.servers))
	for i, up := range w.servers {
		p := &s.polls[i]
		p.side, p.server = s, up
		p.listing.cache = &up.cache
		phase := time.Duration(w.polls.Int64N(int64(w.cfg.Sidecar.Interval)))
		w.events.add(phase, rankReport, p)
	}
	return s, err
}

// happen polls a server and sets the time for the next poll.
func (p *poll) happen(w *world) {
	interval := w.cfg.Sidecar.Interval
	if w.over() {
		return
	}
	jitter := time.Duration((w.polls.Float64()*0.4 - 0.2) * float64(interval))
	w.events.add(w.now+interval+jitter, rankReport, p)
	if !p.server.up || w.frozen() {
		return
	}
	w.totals.Reports++
	p.side.pool.Report(w.time(w.now), p.server.address, p.server.report(w, p))
	p.side.serve(w)
}

// arrive claims an upstream for a job, or lets it wait its turn.
func (s *sidecar) arrive(w *world, j *job) {
	if s.queue.Ahead(j.priority) == 0 && s.try(w, j) == admission.Served {
		return
	}
	wait := w.cfg.Sidecar.Wait
	if j.queueBound > 0 {
		wait = j.queueBound - (w.now - j.arrived)
	}
	j.entry.Priority = j.priority
	if _, err := s.queue.Push(&j.entry.Entry); err != nil {
		panic("BUG: sim: the sidecar's queue is full")
	}
	s.jobs[&j.entry.Entry] = j
	w.events.add(w.now+max(wait, 0), rankTimeout, (*expiry)(j))
}

// try makes one claim and starts the attempt.
func (s *sidecar) try(w *world, j *job) admission.Answer {
	if w.seer != nil {
		w.seer.asking = j
	}
	l, err := s.pool.Claim(w.time(w.now), pool.Request{Project: j.project, Priority: j.priority, Tried: j.tried})
	switch {
	case err == nil:
		w.attempt(j, l)
	case errors.Is(err, pool.ErrAllTried):
		w.end(j, Unserved)
	case errors.Is(err, pool.ErrNotAdmitted), len(j.tried) > 0:
		return admission.PassedOver
	default:
		return admission.Refused
	}
	return admission.Served
}

// serve offers the upstreams to the waiting jobs.
func (s *sidecar) serve(w *world) {
	if s.queue.Len() == 0 || s.serving {
		return
	}
	s.serving = true
	defer func() { s.serving = false }()
	s.queue.Serve(func(e *admission.Entry) admission.Answer {
		a := s.try(w, s.jobs[e])
		if a == admission.Served {
			delete(s.jobs, e)
		}
		return a
	})
}

// expiry is the end of a job's patience, in the sidecar or at a server.
type expiry job

func (e *expiry) happen(w *world) {
	j := (*job)(e)
	if j.ended || j.begun >= 0 {
		return
	}
	switch {
	case j.server != nil && w.now-j.arrived >= j.patience(w):
		j.server.abandon(j)
		j.lease.Done(w.time(w.now), pool.NotStarted)
		w.end(j, Expired)
		j.side.serve(w)
	case j.lease == nil && j.side.queue.Remove(&j.entry.Entry):
		delete(j.side.jobs, &j.entry.Entry)
		w.end(j, Expired)
	}
}

func (j *job) patience(w *world) time.Duration {
	if j.queueBound > 0 {
		return j.queueBound
	}
	return w.cfg.Sidecar.Wait
}
