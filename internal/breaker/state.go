package breaker

import (
	"time"

	"github.com/sony/gobreaker/v2"
)

// State is a breaker's state. Its number is the value of the state's metric.
type State uint8

// The states, a closed set.
const (
	// Closed lets every job through.
	Closed = State(gobreaker.StateClosed)
	// HalfOpen lets one job through, the probe, and waits for its verdict.
	HalfOpen = State(gobreaker.StateHalfOpen)
	// Open lets none through until its time is over and a job comes.
	Open = State(gobreaker.StateOpen)
)

// String returns the word in logs and in the admin interface.
func (s State) String() string { return gobreaker.State(s).String() }

// MarshalText returns the same word.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Status is what a breaker knows, for people.
type Status struct {
	State State `json:"state"`
	// Since is when it came into State; zero if it was never in another.
	Since time.Time `json:"since,omitzero"`
	// Until is when Enter may next let a job through; zero is now.
	Until time.Time `json:"until,omitzero"`
	// Trips counts how often it opened without staying closed for OpenMax
	// in between: the open time has doubled so many times, less one.
	Trips int `json:"trips,omitzero"`
}
