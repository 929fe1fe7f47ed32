package pool

import "time"

// BreakerState is the state of a breaker, as logs and the admin interface name it.
type BreakerState string

// The states, a closed set.
const (
	// BreakerClosed lets every job through.
	BreakerClosed BreakerState = "closed"
	// BreakerHalfOpen lets one job through, the probe, and waits for its verdict.
	BreakerHalfOpen BreakerState = "half-open"
	// BreakerOpen lets none through.
	BreakerOpen BreakerState = "open"
)

// Breaker is what is known of an upstream's breaker, for people.
type Breaker struct {
	// State is closed, half-open or open. It is half-open as soon as its open time is over.
	State BreakerState `json:"state"`
	// Why says why it opened; absent while it is closed.
	Why string `json:"why,omitempty"`
	// Since is when it opened or closed last; absent if it never did.
	Since time.Time `json:"since,omitzero"`
	// Until is when it next lets a job through; absent is now.
	Until time.Time `json:"until,omitzero"`
	// Trips counts how often it opened without working for twelve times breaker.open in between.
	Trips int `json:"trips,omitzero"`
}
