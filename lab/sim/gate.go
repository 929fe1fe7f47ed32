package sim

import (
	"errors"

	"example.org/pilotfish/internal/pool"
)

// gate is the twin of internal/breaker's gate without a clock, so that the simulator has its own
// time: once open, it lets the next job through, since the pool asks only when the open time is over.
type gate struct {
	trips func(inARow int) bool
	row   int // failures
	epoch int // counts changes of open and half
	open  bool
	half  bool // one job was let through, and its verdict is not there
}

func newGate(trips func(inARow int) bool) pool.Gate { return (&gate{trips: trips}).allow }

// allow is the pool.Gate.
func (g *gate) allow() (done func(error), err error) {
	if g.half {
		return nil, errors.New("the breaker is half open, and its job is under way")
	}
	if g.open {
		g.turn(false, true)
	}
	epoch := g.epoch
	return func(err error) {
		switch {
		case epoch != g.epoch: // the verdict is older than the state
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

func (g *gate) turn(open, half bool) {
	g.open, g.half, g.row = open, half, 0
	g.epoch++
}
