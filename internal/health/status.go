package health

import "time"

// State is the state of a breaker, as logs and the admin interface name it.
type State string

// All states of a breaker.
const (
	// Closed lets every job through.
	Closed State = "closed"
	// HalfOpen lets one job through, the trial job, and waits for its result.
	HalfOpen State = "half-open"
	// Open lets no job through.
	Open State = "open"
)

// Status is the state of an upstream's breaker, for people.
type Status struct {
	// State is closed, half-open or open. It is half-open as soon as its open time is over.
	State State `json:"state"`
	// Why says why it opened; absent while it is closed.
	Why string `json:"why,omitempty"`
	// Since is when it opened or closed last; absent if it never did.
	Since time.Time `json:"since,omitzero"`
	// Until is when it next lets a job through; absent if it does so now.
	Until time.Time `json:"until,omitzero"`
	// Trips counts how often it opened. The count starts again once it has been closed for twelve times breaker.open.
	Trips int `json:"trips,omitzero"`
}

// Status returns the breaker's status at now. It changes nothing.
func (b *Breaker) Status(now time.Time) Status {
	s := Status{State: HalfOpen, Why: b.why, Since: b.since, Until: b.tries.until, Trips: b.tries.opened}
	switch {
	case b.state == closed:
		s.State = Closed
	case b.state == open && !b.Ready(now):
		s.State = Open
	}
	if b.Ready(now) {
		s.Until = time.Time{}
	}
	return s
}

// Down returns when the upstream began to refuse connections; zero means that it is not down.
func (b *Breaker) Down() time.Time { return b.down }

// Trips is Status.Trips.
func (b *Breaker) Trips() int { return b.tries.opened }
