// Package breaker has the circuit breaker of each upstream: sony/gobreaker's two-step breaker.
//
// The library counts failures in a row, opens, lets one job through when it is half open, and
// drops verdicts from before its last change. What it lacks is internal/pool's: how long it stays
// open, which grows, what other sidecars see fail, and a probe whose verdict is lost.
package breaker

import (
	"math"

	"github.com/sony/gobreaker/v2"

	"example.org/pilotfish/internal/pool"
)

// shortest is how long the library keeps a breaker open. It is below the shortest open time that
// may be set: the pool asks again only when its own open time is over.
const shortest = pool.MinOpen / 2

// gate is one upstream's breaker. It is not safe for concurrent use, as the pool is not.
type gate struct {
	*gobreaker.TwoStepCircuitBreaker[struct{}]
	state gobreaker.State // the library's own State may change it
}

// New makes the breaker of the upstream at address. trips says whether so many failures in a row
// open it.
func New(address string, trips func(inARow int) bool) pool.Gate {
	g := &gate{}
	g.TwoStepCircuitBreaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Name: address, MaxRequests: 1, Timeout: shortest,
		ReadyToTrip:   func(c gobreaker.Counts) bool { return trips(int(min(c.ConsecutiveFailures, math.MaxInt32))) },
		OnStateChange: func(_ string, _, to gobreaker.State) { g.state = to }, // under the library's lock
	})
	return g
}

// Open implements pool.Gate.
func (g *gate) Open() bool { return g.state == gobreaker.StateOpen }
