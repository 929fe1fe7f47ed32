package breaker

import "errors"

// simulated behaves like the library's breaker but has no clock, so it works in simulated time. When open, it lets the next
// job through as a probe: internal/health sends it a job only after the open time has passed.
type simulated struct {
	trips func(inARow int) bool
	row   int // consecutive failures
	epoch int // number of state changes
	open  bool
	half  bool // half open: a probe is in flight
}

// NewSimulated is New without a clock, for the simulator and tests.
func NewSimulated(trips func(inARow int) bool) gate { return (&simulated{trips: trips}).allow }

// allow is a gate.
func (g *simulated) allow() (done func(error), err error) {
	if g.half {
		return nil, errors.New("the breaker is half open, and its probe is in flight")
	}
	if g.open {
		g.turn(false, true)
	}
	epoch := g.epoch
	return func(err error) {
		switch {
		case epoch != g.epoch: // the job started before the last state change: ignore its result
		case err == nil && g.half:
			g.turn(false, false)
		case err == nil:
			g.row = 0
		case g.half || g.trips(g.row+1):
			g.turn(true, false)
		default:
			g.row++
		}
	}, nil
}

func (g *simulated) turn(open, half bool) {
	g.open, g.half, g.row = open, half, 0
	g.epoch++
}
