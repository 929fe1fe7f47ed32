package sim

import (
	"cmp"
	"errors"
	"math/rand/v2"

	"example.org/pilotfish/internal/breaker"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/lab/trace"
	"example.org/pilotfish/pkg/selection"
)

// sidecar is one submitter's pilotfish: the real dispatcher, pool and breakers.
type sidecar struct {
	pool     *pool.Pool
	dispatch *dispatch.Dispatcher
	jobs     map[*dispatch.Job]*job // jobs that have not ended
	polls    []poll                 // by server
	serving  bool                   // serve is running; a job that ends within it must not call it again
}

// The first numbers of the sidecars' random streams.
const (
	poolStream     = 1000 // plus the sidecar's number
	dispatchStream = 2 << 32
)

// ownPolicy is a policy with state. Each sidecar needs its own copy.
type ownPolicy interface {
	ForSidecar(sidecars int) selection.Policy
}

func newSidecar(w *world, number int) *sidecar {
	s := &sidecar{jobs: make(map[*dispatch.Job]*job)}
	cfg := &w.cfg.Sidecars
	stream := func(n uint64) *rand.Rand { return rand.New(rand.NewPCG(w.cfg.Seed, n+uint64(number))) }
	policy := w.cfg.Policy
	if own, ok := policy.(ownPolicy); ok {
		policy = own.ForSidecar(cfg.Count)
	}
	var err, refused error
	s.pool, err = pool.New(pool.Config{
		Settings:     pool.Settings{Policy: policy, Detector: w.cfg.Detector, Interval: cfg.Interval, Probe: cfg.Probe, Withdraw: cfg.Withdraw, Breaker: cfg.Breaker},
		Gate:         breaker.NewSimulated,
		Rand:         stream(poolStream),
		RefusalPause: -1, // do not treat cancelled jobs as refusals of the upstream
	})
	retry := dispatch.DefaultRetry()
	retry.Attempts, retry.Budget = cfg.Attempts, cfg.Budget
	s.dispatch, refused = dispatch.New(dispatch.Config{
		Pool: s.pool, Rand: stream(dispatchStream),
		Retry: retry, Projects: cfg.Projects,
		// Practically unbounded: the experiments shed no jobs.
		Queue: dispatch.QueueSettings{Jobs: 1 << 30, Bytes: 1 << 50, Wait: cfg.Wait},
	})
	if err := cmp.Or(err, refused); err != nil {
		panic("BUG: sim: settings that were not checked: " + err.Error())
	}
	return s
}

// submit submits a job to the sidecar.
func (s *sidecar) submit(w *world, j *job) {
	j.side, j.arrived = s, w.now
	r := dispatch.Request{
		Project: j.project, Priority: j.Priority, Prefetch: j.Prefetch, Arrived: w.time(w.now), Withdraw: j,
		Queue:    trace.Duration(j.Timeouts.Queue),
		Evaluate: trace.Duration(j.Timeouts.Evaluate),
		Stream:   trace.Duration(j.Timeouts.Stream),
	}
	if w.cfg.Sidecars.LengthKey {
		r.LengthKey = uint64(j.Channel)
	}
	if !w.cfg.Sidecars.OneKey {
		r.Data = j.parts()
	}
	j.dispatch = s.dispatch.Begin(r)
	s.jobs[j.dispatch] = j
	w.lose(j)
	s.claim(w, j)
}

// Withdraw implements dispatch.Withdrawer. It only reports success: reconsider withdraws the attempt.
func (*job) Withdraw() bool { return true }

// reconsider moves the jobs that wait at a suspect upstream.
func (s *sidecar) reconsider(w *world) {
	for _, moved := range s.dispatch.Reconsider(w.time(w.now)) {
		j := s.jobs[moved]
		if j.server == nil { // the job has not reached the server yet
			s.dispatch.CancelMove(w.time(w.now), moved)
			continue
		}
		j.server.abandon(j)
		s.fail(w, j, dispatch.Failure{Outcome: pool.Moved, Progress: dispatch.Begun}, Lost)
	}
}

// claim claims an upstream for the job's next attempt, or leaves the job in the sidecar's queue. Probes come before.
func (s *sidecar) claim(w *world, j *job) {
	addresses, timeout := s.dispatch.Probes(w.time(w.now), j.dispatch)
	if len(addresses) == 0 {
		s.arrive(w, j)
		return
	}
	w.events.Add(w.now+s.probe(w, j, addresses, timeout), rankArrival, func() {
		if !j.ended {
			s.arrive(w, j)
		}
	})
}

// arrive claims an upstream, or leaves the job in the sidecar's queue.
func (s *sidecar) arrive(w *world, j *job) {
	g, granted := s.dispatch.Arrive(w.time(w.now), j.dispatch)
	s.pollEarly(w)
	if granted {
		s.granted(w, g)
		return
	}
	w.events.Add(j.dispatch.GiveUpAt().Sub(epoch), rankTimeout, func() {
		if !w.time(w.now).Before(j.dispatch.GiveUpAt()) && s.dispatch.GiveUp(j.dispatch) {
			w.end(j, Expired)
		}
	})
	s.serve(w)
}

// serve starts the queued jobs that can get an upstream.
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
	s.withdraw(w)
	s.pollEarly(w)
}

// granted starts an attempt, or ends a job that cannot get an upstream.
func (s *sidecar) granted(w *world, g dispatch.Grant) {
	j := s.jobs[g.Job]
	switch {
	case g.Err == nil:
		w.attempt(j, g)
		w.hedge(j)
	case errors.Is(g.Err, pool.ErrAllTried):
		w.end(j, j.last)
	case errors.Is(g.Err, pool.ErrBusy), errors.As(g.Err, new(*dispatch.LaterError)): // a prefetch without a free core; or 429 because of a project limit
		w.end(j, Unserved)
	default:
		panic("BUG: sim: the sidecar's queue is full")
	}
}
