package admin

import (
	"time"

	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/quality"
)

// Now is the sidecar's current state, as the page shows it.
type Now struct {
	// At is the time of the state.
	At time.Time `json:"at"`
	// NotReady is the reason why the sidecar is not ready for jobs; "" if it is ready.
	NotReady string `json:"not_ready,omitempty"`
	// Warnings state which input is rejected, since when and why: the configuration file, or the list of upstreams.
	Warnings []string `json:"warnings,omitempty"`
	// InFlight are the jobs at upstreams, Waiting those in the sidecar's queue.
	InFlight int `json:"in_flight"`
	Waiting  int `json:"waiting"`
	quality.View
	// Failures are the last failed jobs, the latest first. Each has the fields of its log
	// line, and "at", the time of its end.
	Failures []map[string]any `json:"failures"`
	// Open are the jobs that have been at their upstreams for the longest time, the oldest first.
	Open []balancer.Open `json:"open"`
	// Projects are the projects with the most jobs at upstreams, the busiest first.
	Projects []dispatch.ProjectLoad `json:"projects"`
	// Landings are the last jobs that needed data and got a response, the oldest first; a sample if there are many.
	Landings []Landing `json:"landings"`
	// Holdings are their projects, and the upstreams that have the data of each.
	Holdings []Holding `json:"holdings"`
	// Events is the number of events since the start; /api/events returns the last ones.
	Events int `json:"events"`
	// Shadow is selection.shadow, the policy to compare with the one in force; absent if unset.
	Shadow string `json:"shadow,omitempty"`
}

// About is the state that does not change while the process runs, and the configuration.
type About struct {
	// Version is pilotfish's version, and Go that of the compiler.
	Version string `json:"version"`
	Go      string `json:"go"`
	// Host is the name of the machine, and Ports are the addresses where the sidecar listens.
	Host  string   `json:"host"`
	Ports []string `json:"ports"`
	// Started is the time when the process started.
	Started time.Time `json:"started"`
	// Write is set if admin_write allows operators to drain upstreams and to reload the configuration.
	Write bool `json:"write"`
	// Configuration is the configuration in effect, as YAML, without passwords.
	Configuration string `json:"configuration"`
}
