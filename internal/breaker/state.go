package breaker

import "time"

// State is a breaker's state. Its number is the value of the state's metric.
type State uint8

// The states, a closed set.
const (
	// Closed lets every job through.
	Closed State = iota
	// HalfOpen lets one job through, the probe, and waits for its verdict.
	HalfOpen
	// Open lets none through until its time is over and a job comes.
	Open
)

// String returns the word in logs and in the admin interface.
func (s State) String() string { return [...]string{"closed", "half-open", "open"}[s] }

// MarshalText returns the same word.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Verdict is what an attempt tells about its upstream's health.
type Verdict uint8

// The verdicts. Unknown says nothing, as when the submitter left first. Unreachable opens
// the breaker at once.
const (
	Healthy Verdict = iota
	Unhealthy
	Unknown
	Unreachable
)

// Status is what a breaker knows, for people.
type Status struct {
	// State is closed, half-open or open.
	State State `json:"state"`
	// Since is when it came into State; zero if it was never in another.
	Since time.Time `json:"since,omitzero"`
	// Until is when it next lets a job through; zero is now.
	Until time.Time `json:"until,omitzero"`
	// Trips counts how often it opened without working for OpenMax in between.
	Trips int `json:"trips,omitzero"`
}
