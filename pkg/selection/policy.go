// Package selection holds the host selection policies: given a job's public
// facts and a view of every eligible upstream, which one should run it?
//
// Policies are pure values. They own no clock, lock or random source, keep
// nothing between picks, and see nothing of the pool but the views.
package selection

import "math/rand/v2"

// Policy chooses an upstream for a job.
type Policy interface {
	// Pick returns the index in views of the upstream chosen. views is never
	// empty and sorted by the upstreams' addresses; Pick neither keeps nor
	// changes it. Ties are broken with rng, never by index.
	Pick(job Job, views []View, rng *rand.Rand) int
}

// Cost is what a policy weighed for one upstream, in seconds; lower is better.
type Cost struct {
	// Total is the sum of the others.
	Total float64 `json:"total"`
	// Wait is the price of the expected wait, or of taking a free core.
	Wait float64 `json:"wait"`
	// Fetch is the time for the project's data.
	Fetch float64 `json:"fetch"`
	// Placement is the price of leading the project astray from its home.
	Placement float64 `json:"placement"`
	// Stop is what a stop of the upstream is expected to lose.
	Stop float64 `json:"stop"`
}

// Coster is a Policy that can show its reasons.
type Coster interface {
	Policy
	// Costs fills costs[i] with the cost of views[i]; the slices have equal lengths.
	Costs(job Job, views []View, costs []Cost)
}
