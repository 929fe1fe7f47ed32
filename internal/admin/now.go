package admin

import (
	"time"

	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/quality"
)

// Now is what the page shows of the moment.
type Now struct {
	// At is the moment.
	At time.Time `json:"at"`
	// NotReady says why the sidecar does not want jobs; "" if it does.
	NotReady string `json:"not_ready,omitempty"`
	// Panic is set while breakers are ignored because every one is open.
	Panic bool `json:"panic,omitempty"`
	// InFlight are the jobs at upstreams, Waiting those in the sidecar's queue.
	InFlight int `json:"in_flight"`
	Waiting  int `json:"waiting"`
	// Fleet is how all jobs were served, and Upstreams how each upstream is.
	Fleet     quality.Status     `json:"fleet"`
	Upstreams []quality.Upstream `json:"upstreams"`
	// Capacity is what the fleet can do and needs; absent while that is not known.
	Capacity *quality.Advice `json:"capacity,omitempty"`
	// Failures are the last jobs that failed, the latest first, and Open those that have been
	// at their upstream for longest, the oldest first.
	Failures []Failure       `json:"failures"`
	Open     []balancer.Open `json:"open"`
	// Projects are those with most jobs at upstreams, the busiest first.
	Projects []dispatch.ProjectLoad `json:"projects"`
}

// Upstreams is the upstreams alone.
type Upstreams struct {
	// Upstreams are in the order of their addresses.
	Upstreams []quality.Upstream `json:"upstreams"`
}

// History is the last hour.
type History struct {
	// Points are the steps of ten seconds that are over, the oldest first.
	Points []quality.Point `json:"points"`
}

// Failure is a job that failed lately.
type Failure struct {
	// ID, Session, Project and Priority are those of the job's log line.
	ID       string `json:"id"`
	Session  string `json:"session,omitempty"`
	Project  string `json:"project,omitempty"`
	Priority string `json:"priority"`
	// At is when it ended, and Seconds the time from its arrival to its end.
	At      time.Time `json:"at"`
	Seconds float64   `json:"seconds"`
	// Outcome is how it ended, and Status what its submitter was answered. Reason is
	// the word for an answer of pilotfish's own, and Error what went wrong.
	Outcome string `json:"outcome"`
	Status  int    `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Error   string `json:"error,omitempty"`
	// Upstreams are those tried.
	Upstreams []string `json:"upstreams"`
}

// About is what does not change while the process runs, and the configuration.
type About struct {
	// Version is pilotfish's, and Go that of its compiler.
	Version string `json:"version"`
	Go      string `json:"go"`
	// Host is the name of the machine, and Ports are the addresses where the sidecar listens.
	Host  string   `json:"host"`
	Ports []string `json:"ports"`
	// Started is when the process did.
	Started time.Time `json:"started"`
	// Write is set where upstreams may be drained by hand.
	Write bool `json:"write"`
	// Configuration is what is in effect, as YAML, without passwords.
	Configuration string `json:"configuration"`
}
