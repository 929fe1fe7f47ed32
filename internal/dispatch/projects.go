package dispatch

import (
	"errors"
	"math"
	"time"

	"example.org/pilotfish/internal/settings"
)

var (
	// ErrAtLimit is wrapped in the error of a job whose project has reached projects.limit.
	ErrAtLimit = errors.New("the project has reached its limit of jobs in flight")
	// ErrRate is wrapped in the error of a job whose project exceeds projects.per_minute.
	ErrRate = errors.New("the project exceeds its limit of jobs per minute")
)

// LaterError refuses a job at once because of a limit of its project. After is the time after which a
// retry can succeed.
type LaterError struct {
	Err   error
	After time.Duration
}

func (e *LaterError) Error() string { return e.Err.Error() }
func (e *LaterError) Unwrap() error { return e.Err }

// ProjectSettings limits each project on this sidecar.
type ProjectSettings struct {
	// Limit is the maximum of one project's jobs in flight from this sidecar;
	// further jobs wait in the queue. A value below 1 is a share of this sidecar's jobs in
	// flight, and applies only while no upstream has a free core. 0 means no limit.
	Limit float64 `yaml:"limit"`
	// PerMinute is the maximum number of jobs per minute that this sidecar accepts from one project. Further jobs
	// get 429 at once, with the time until the next job is accepted in Retry-After. 0 means no limit.
	PerMinute int `yaml:"per_minute"`
}

const (
	maxProjectLimit = 100_000
	maxPerMinute    = 6_000_000
)

// Check reports what cannot be used.
func (s ProjectSettings) Check(f *settings.Faults) {
	f.Between("limit", s.Limit, 0, maxProjectLimit)
	f.Within("per_minute", s.PerMinute, 0, maxPerMinute)
	if s.Limit > 1 && s.Limit != math.Trunc(s.Limit) {
		f.Add("limit", "%v is neither a whole number nor a share below 1", s.Limit)
	}
}

// ProjectLoad is the load of one project on a sidecar.
type ProjectLoad struct {
	// Name is the project's identifier, or the fairness ID that a gateway gives instead.
	Name string `json:"name"`
	// InFlight is the number of its jobs at upstreams, Waiting the number in the
	// sidecar's queue. Limit is the maximum of InFlight; 0 means no limit.
	InFlight int `json:"in_flight"`
	Waiting  int `json:"waiting"`
	Limit    int `json:"limit"`
}
