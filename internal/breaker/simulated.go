package breaker

import "errors"

// simulated behaves like the library's breaker but has no clock, so it works in simulated time. When open, it lets the next
// job through as a trial job: internal/health sends it a job only after the open time has passed.
type simulated struct {
	trips    func(inARow int) bool
	failures int // consecutive failures
	epoch    int // number of state changes
	open     bool
	halfOpen bool // half open: a trial job is in flight
}

// NewSimulated is New without a clock, for the simulator and tests.
func NewSimulated(trips func(inARow int) bool) gate { return (&simulated{trips: trips}).allow }

// allow is a gate.
func (g *simulated) allow() (done func(error), err error) {
	if g.halfOpen {
		return nil, errors.New("the breaker is half open, and its trial job is in flight")
	}
	if g.open {
		g.change(false, true)
	}
	epoch := g.epoch
	return func(err error) {
		switch {
		case epoch != g.epoch: // the job started before the last state change: ignore its result
		case err == nil && g.halfOpen:
			g.change(false, false)
		case err == nil:
			g.failures = 0
		case g.halfOpen || g.trips(g.failures+1):
			g.change(true, false)
		default:
			g.failures++
		}
	}, nil
}

func (g *simulated) change(open, half bool) {
	g.open, g.halfOpen, g.failures = open, half, 0
	g.epoch++
}
