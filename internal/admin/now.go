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
	// InFlight are the jobs at upstreams, Waiting those in the sidecar's queue.
	InFlight int `json:"in_flight"`
	Waiting  int `json:"waiting"`
	quality.View
	// Failures are the last jobs that failed, the latest first: each has the members of its line
	// in the log, and "at", when it ended.
	Failures []map[string]any `json:"failures"`
	// Open are the jobs that have been at their upstream for longest, the oldest first.
	Open []balancer.Open `json:"open"`
	// Projects are those with most jobs at upstreams, the busiest first.
	Projects []dispatch.ProjectLoad `json:"projects"`
	// Landings are the last jobs that needed data and got a response, the oldest first; of many, a sample.
	Landings []Landing `json:"landings"`
	// Holdings are their projects, and the upstreams that have the data of each.
	Holdings []Holding `json:"holdings"`
	// Events is how many events there were since the start; /api/events has the last ones.
	Events int `json:"events"`
	// Shadow is the policy that the one in force is compared with; absent without one.
	Shadow string `json:"shadow,omitempty"`
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
