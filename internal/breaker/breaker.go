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

// New makes the breaker of an upstream. trips says whether so many failures in a row open it.
func New(trips func(inARow int) bool) pool.Gate {
	return gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests: 1, Timeout: shortest,
		ReadyToTrip: func(c gobreaker.Counts) bool { return trips(int(min(c.ConsecutiveFailures, math.MaxInt32))) },
	}).Allow
}
