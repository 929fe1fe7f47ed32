package sim

import (
	"errors"
	"math/rand/v2"

	"example.org/pilotfish/internal/breaker"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/pool"
)

// sidecar is one submitter's pilotfish: the real dispatcher, pool and breakers.
type sidecar struct {
	pool     *pool.Pool
	dispatch *dispatch.Dispatcher
	jobs     map[*dispatch.Job]*job // that have not ended
	polls    []poll                 // by server
	serving  bool                   // serve runs: a job that ends within it must not run it again
}

// The random streams of a sidecar, beside those of the world.
const (
	poolStream     = 1000 // plus the sidecar's number
	breakerStream  = 1 << 32
	dispatchStream = 2 << 32
)

func newSidecar(w *world, number int) (*sidecar, error) {
	s := &sidecar{jobs: make(map[*dispatch.Job]*job)}
	cfg := &w.cfg.Sidecars
	stream := func(n uint64) *rand.Rand { return rand.New(rand.NewPCG(w.cfg.Seed, n+uint64(number))) }
	breakers, err := breaker.New(breaker.Config{Settings: cfg.Breaker, Rand: stream(breakerStream)})
	if err != nil {
		return nil, err
	}
	s.pool, err = pool.New(pool.Config{
		Settings: pool.Settings{Policy: w.cfg.policy(), Detector: w.cfg.Detector, Interval: cfg.Interval},
		Breakers: breakers,
		Rand:     stream(poolStream),
		Hold:     -1, // a job that loses patience is no refusal
	})
	if err != nil {
		return nil, err
	}
	s.dispatch, err = dispatch.New(dispatch.Config{
		Pool: s.pool, Rand: stream(dispatchStream),
		Retry: cfg.retry(), Projects: cfg.Projects, SecondThoughts: cfg.SecondThoughts, Blind: cfg.Blind, CountTimeouts: cfg.CountTimeouts,
		// As long as the day is: the experiments shed nothing.
		Queue:  dispatch.QueueSettings{Jobs: 1 << 30, Bytes: 1 << 50, Wait: cfg.Wait},
		Asking: func(d *dispatch.Job) { w.asking = s.jobs[d] },
	})
	return s, err
}

// submit takes in a job.
func (s *sidecar) submit(w *world, j *job) {
	j.side, j.arrived = s, w.now
	if j.again == 0 {
		j.first = w.now
	}
	r := dispatch.Request{
		Project: j.project, Priority: j.priority, Arrived: w.time(w.now),
		Queue: j.queueBound, Evaluate: j.evaluateBound, Stream: j.streamBound, Withdraw: atOnce{},
	}
	if w.cfg.Sidecars.Bytes {
		r.DataBytes = float64(j.bytes)
	}
	j.dispatch = s.dispatch.Begin(r)
	s.jobs[j.dispatch] = j
	w.expectAnswer(j)
	s.claim(w, j)
}

// atOnce is how a modelled attempt is withdrawn: reconsider does it.
type atOnce struct{}

// Withdraw implements dispatch.Withdrawer.
func (atOnce) Withdraw() bool { return true }

// reconsider moves the jobs that have second thoughts.
func (s *sidecar) reconsider(w *world) {
	for _, m := range s.dispatch.Reconsider(w.time(w.now)) {
		j := s.jobs[m.Job]
		if j.server == nil { // it is still on its way
			s.dispatch.Stay(w.time(w.now), m.Job)
			continue
		}
		if w.cfg.Sidecars.Copies && m.Reason == pool.ByLateness {
			s.double(w, j)
			continue
		}
		j.server.abandon(j)
		s.fail(w, j, dispatch.Failure{Outcome: pool.Moved, Progress: dispatch.Begun}, Lost)
	}
}

// double sends a copy of a late job to the place that was claimed for it.
func (s *sidecar) double(w *world, j *job) {
	g, _ := s.dispatch.Arrive(w.time(w.now), j.dispatch) // the place is claimed already
	double := *j
	double.forgetAttempt()
	double.on, double.watched = nil, never
	double.other, j.other = j, &double
	w.attempt(&double, g)
}

// drop ends the copy of a job that another one has made needless.
func (w *world) drop(j *job) {
	if j.server != nil {
		j.server.abandon(j)
	}
	j.assignment.Done(w.time(w.now), pool.Gone)
	j.part()
}

// part leaves the job to its copy.
func (j *job) part() {
	j.other.other, j.other = nil, nil
	j.ended = true
}

// claim asks for an upstream for the job's next attempt.
func (s *sidecar) claim(w *world, j *job) {
	g, granted := s.dispatch.Arrive(w.time(w.now), j.dispatch)
	s.askEarly(w)
	if granted {
		s.granted(w, g)
		return
	}
	w.events.add(j.dispatch.GiveUpAt().Sub(epoch), rankTimeout, (*queueTimeout)(j))
	s.serve(w)
}

// serve offers the upstreams to the waiting jobs.
func (s *sidecar) serve(w *world) {
	if s.serving {
		return
	}
	s.serving = true
	defer func() { s.serving = false }()
	for _, g := range s.dispatch.Serve(w.time(w.now)) {
		s.granted(w, g)
	}
	s.reconsider(w)
	s.askEarly(w)
}

// granted starts an attempt, or ends a job that has been everywhere.
func (s *sidecar) granted(w *world, g dispatch.Grant) {
	j := s.jobs[g.Job]
	switch {
	case g.Err == nil:
		w.attempt(j, g)
	case errors.Is(g.Err, pool.ErrAllTried):
		w.end(j, j.last)
	case errors.Is(g.Err, dispatch.ErrAtLimit):
		w.end(j, Shed)
	default:
		panic("BUG: sim: the sidecar's queue is full")
	}
}

// queueTimeout is the end of a job's patience in its sidecar.
type queueTimeout job

func (x *queueTimeout) happen(w *world) {
	j, now := (*job)(x), w.time(w.now)
	if !now.Before(j.dispatch.GiveUpAt()) && j.side.dispatch.GiveUp(j.dispatch) {
		w.end(j, Expired)
	}
}
