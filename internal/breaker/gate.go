package breaker

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"example.org/pilotfish/internal/pool"
)

// The results that gobreaker counts as a failure, and as nothing at all.
var (
	errUnhealthy = errors.New("unhealthy")
	errUnknown   = errors.New("unknown")
)

// gate is the breaker of one upstream. gobreaker decides when to open and
// close and whose results still count; the gate decides when an open one may
// be tried again, and gives up on probes whose verdict does not come.
type gate struct {
	address string
	config  Config
	changed func(address string, from, to State)

	// notBefore is when Enter may next let a job through; nil is now. It is
	// apart from mu so that Ready, asked for every upstream at every pick, is
	// one load.
	notBefore atomic.Pointer[time.Time]

	mu      sync.Mutex
	rng     *rand.Rand
	breaker *gobreaker.TwoStepCircuitBreaker[struct{}]
	state   State // as of the last transition: gobreaker's State() may cause one
	since   time.Time
	trips   int
	open    time.Duration // the last open time before jitter
	probe   *ticket       // the one job let through while half open

	news    []transition // not told yet
	telling bool
}

type transition struct{ from, to State }

// ticket is one job let through.
type ticket struct {
	report func(error) // to gobreaker, for the state the job was let through in
	done   bool
}

func newGate(address string, config Config, rng *rand.Rand, changed func(string, State, State)) *gate {
	g := &gate{address: address, config: config, rng: rng, changed: changed}
	g.breaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests: 1,
		// The shortest there is: notBefore keeps jobs out for the real open
		// time, which gobreaker could not vary.
		Timeout: time.Nanosecond,
		ReadyToTrip: func(counts gobreaker.Counts) bool {
			return counts.ConsecutiveFailures >= uint32(config.Failures)
		},
		IsExcluded: func(err error) bool { return errors.Is(err, errUnknown) },
		// gobreaker calls this with its lock held, so it only takes the note.
		OnStateChange: func(_ string, _, to gobreaker.State) { g.state = State(to) },
	})
	return g
}

// Ready implements pool.Gate.
func (g *gate) Ready(now time.Time) bool {
	t := g.notBefore.Load()
	return t == nil || !now.Before(*t)
}

// Enter implements pool.Gate.
func (g *gate) Enter(now time.Time) (done func(now time.Time, v pool.Verdict), ok bool) {
	g.mu.Lock()
	defer g.unlock()
	if !g.Ready(now) {
		return nil, false
	}
	before := g.state
	if g.probe != nil {
		g.probe.report(errUnknown) // overdue: it makes room for the next
	}
	report, err := g.breaker.Allow()
	g.settle(now, before)
	if err != nil { // now is ahead of the clock that gobreaker reads
		return nil, false
	}
	t := &ticket{report: report}
	if g.state == HalfOpen {
		g.probe = t
		g.wait(now.Add(g.config.Probe))
	}
	return func(now time.Time, v pool.Verdict) { g.done(now, t, v) }, true
}

func (g *gate) done(now time.Time, t *ticket, v pool.Verdict) {
	g.mu.Lock()
	defer g.unlock()
	if t.done {
		return
	}
	t.done = true
	if g.state == Open {
		return // let through before it opened; gobreaker, asked now, would go half open
	}
	before := g.state
	switch {
	case v == pool.Healthy:
		t.report(nil)
	case v == pool.Unhealthy:
		t.report(errUnhealthy)
	case t == g.probe:
		t.report(errUnknown)
		g.probe = nil
		g.notBefore.Store(nil) // the next job is the probe
	}
	g.settle(now, before)
}

// settle follows gobreaker if it left the state that it was in before.
func (g *gate) settle(now time.Time, before State) {
	if g.state == before {
		return
	}
	switch g.state {
	case Open:
		g.wait(now.Add(g.lengthen(now, before)))
	case Closed:
		g.notBefore.Store(nil)
	}
	g.since = now
	g.probe = nil
	g.news = append(g.news, transition{before, g.state})
}

// lengthen returns for how long to open: twice as long as the last time,
// unless the upstream has since worked for OpenMax.
func (g *gate) lengthen(now time.Time, before State) time.Duration {
	if before == Closed && now.Sub(g.since) >= g.config.OpenMax {
		g.trips, g.open = 0, 0
	}
	g.trips++
	g.open = min(max(2*g.open, g.config.Open), g.config.OpenMax)
	return time.Duration(float64(g.open) * (1 + g.config.Jitter*(2*g.rng.Float64()-1)))
}

func (g *gate) wait(until time.Time) { g.notBefore.Store(&until) }

// unlock releases mu, and tells of transitions while it is free: one caller at
// a time, so that they are told in order.
func (g *gate) unlock() {
	for !g.telling && len(g.news) > 0 {
		n := g.news[0]
		g.news = g.news[1:]
		g.telling = true
		g.mu.Unlock()
		g.changed(g.address, n.from, n.to)
		g.mu.Lock()
		g.telling = false
	}
	g.mu.Unlock()
}

func (g *gate) status() Status {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := Status{State: g.state, Since: g.since, Trips: g.trips}
	if t := g.notBefore.Load(); t != nil {
		s.Until = *t
	}
	return s
}

// spotless reports whether the breaker never opened: a new one would be as good.
func (g *gate) spotless() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.trips == 0
}
