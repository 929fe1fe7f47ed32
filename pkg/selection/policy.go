// Package selection holds the host selection policies, which choose the upstream of a job. Their input is what the
// sidecar knows of the job and a view of every eligible upstream.
//
// Policies are pure values. They have no clock, lock or random source, keep no state between picks, and see nothing of
// the pool except the views.
//
// Package policytest checks policies, also those of other projects.
package selection

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Policy chooses the upstream for a job.
type Policy interface {
	// Pick returns the index in views of the chosen upstream. views is never
	// empty, and it is sorted by the upstreams' addresses. Pick neither keeps
	// nor changes it. Ties are broken with rng, never by index.
	Pick(job Job, views []View, rng *rand.Rand) int
}

// Cost is a policy's estimated cost of one upstream, in seconds, with its parts; lower is better.
type Cost struct {
	// Total is the sum of the other fields.
	Total float64 `json:"total"`
	// Wait is the expected wait for a core, or for a prompt, for the start of prefill.
	Wait float64 `json:"wait"`
	// Fetch is the price of fetching the project's data: less than the time, because later jobs reuse the data.
	Fetch float64 `json:"fetch"`
	// Placement is the surcharge for fetching the project's data at an upstream other than its first-ranked one.
	Placement float64 `json:"placement"`
	// Stop is the expected loss if the upstream stops during the job.
	Stop float64 `json:"stop"`
}

// Local marks a Policy that picks upstreams far down in a project's rendezvous order only if the upstreams before them
// are full. In a large pool, such a policy gets the views of only the first upstreams in this order.
type Local interface {
	Policy
	// Local has no effect: having the method is the mark.
	Local()
}

// Coster is a Policy that can show the costs that it compares.
type Coster interface {
	Policy
	// PickWithCosts is Pick, and fills costs[i] with the cost of views[i]; the slices have equal lengths.
	PickWithCosts(job Job, views []View, costs []Cost, rng *rand.Rand) int
}

// Names lists every policy that New knows: the default first, then those that need more information about upstreams
// before those that need less.
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
