// Package breaker makes the gates of internal/health: sony/gobreaker's two-step breaker, and a twin of it without a clock.
//
// The library counts failures in a row, opens, lets one job through when it is half open, and ignores results from before
// its last change. internal/health adds what it lacks.
package breaker

import (
	"math"
	"time"

	"github.com/sony/gobreaker/v2"
)

// gate lets a job through, or refuses it with an error: health.Gate.
type gate = func() (done func(error), err error)

// libraryOpenTime is how long the library keeps a breaker open. It is below health.MinOpen: internal/health calls the library
// again only after its own open time.
const libraryOpenTime = time.Millisecond / 2

// New makes the gate of an upstream. trips reports whether this many failures in a row open it.
func New(trips func(inARow int) bool) gate {
	return gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests: 1, Timeout: libraryOpenTime,
		ReadyToTrip: func(c gobreaker.Counts) bool { return trips(int(min(c.ConsecutiveFailures, math.MaxInt32))) },
	}).Allow
}
