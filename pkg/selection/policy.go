// Package selection holds the host selection policies: given a job's public
// facts and a view of every eligible upstream, which one should run it?
//
// Policies are pure values. They own no clock, lock or random source, keep
// nothing between picks, and see nothing of the pool but the views.
//
// Package policytest checks policies, also those of other projects.
package selection

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Policy chooses an upstream for a job.
type Policy interface {
	// Pick returns the index in views of the chosen upstream. views is never
	// empty, and it is sorted by the upstreams' addresses. Pick neither keeps
	// nor changes it. Ties are broken with rng, never by index.
	Pick(job Job, views []View, rng *rand.Rand) int
}

// Cost is what a policy weighed for one upstream, in seconds; lower is better.
type Cost struct {
	// Total is the sum of the others.
	Total float64 `json:"total"`
	// Wait is the price of the expected wait, or of taking a free core.
	Wait float64 `json:"wait"`
	// Fetch is the time to fetch the project's data.
	Fetch float64 `json:"fetch"`
	// Placement is the price of fetching the project's data at another
	// upstream than its first-ranked one.
	Placement float64 `json:"placement"`
	// Stop is the expected loss if the upstream stops during the job.
	Stop float64 `json:"stop"`
}

// Local is a Policy that takes upstreams far down in a project's rendezvous
// order only when those before them are full. In a large pool such a policy
// gets only some of the views.
type Local interface {
	Policy
	// Local does nothing.
	Local()
}

// Coster is a Policy that can show its reasons.
type Coster interface {
	Policy
	// PickWithCosts is Pick, and fills costs[i] with the cost of views[i]; the slices have equal lengths.
	PickWithCosts(job Job, views []View, costs []Cost, rng *rand.Rand) int
}

// Names lists every policy that New knows, the default first, then by how much
// they must know of the upstreams.
func Names() []string {
	return []string{"expected", "dynamic", "bounded-hash", "least-in-flight", "baseline", "random"}
}

// New returns the policy of that name with its default parameters. The error
// for an unknown name lists the known ones.
func New(name string) (Policy, error) {
	switch name {
	case "expected":
		return DefaultExpected(), nil
	case "dynamic":
		return Dynamic{}, nil
	case "bounded-hash":
		return BoundedHash{}, nil
	case "least-in-flight":
		return LeastInFlight{}, nil
	case "baseline":
		return Baseline{}, nil
	case "random":
		return Random{}, nil
	}
	return nil, fmt.Errorf("unknown selection policy %q: want one of %s", name, strings.Join(Names(), ", "))
}
