// Package rivals holds host selection policies to compare with: a hash and a
// turn, which show what no knowledge at all is worth, and what other systems
// run. Each has a weakness that its comment names. None is meant for service:
// for that, use those of package selection.
package rivals

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"example.org/pilotfish/pkg/selection"
)

// Names lists the policies of this package.
func Names() []string {
	return []string{"baseline", "round-robin", "cache-threshold", "sticky-until"}
}

// All lists every policy that New knows: those of package selection, then those
// of this one.
func All() []string { return slices.Concat(selection.Names(), Names()) }

// New returns the policy of that name, from this package or from package
// selection, with its default parameters. The error for an unknown name lists
// the known ones.
func New(name string) (selection.Policy, error) {
	if policy, ok := map[string]selection.Policy{
		"baseline": Baseline{}, "round-robin": RoundRobin{}, "cache-threshold": CacheThreshold{}, "sticky-until": StickyUntil{},
	}[name]; ok {
		return policy, nil
	}
	policy, err := selection.New(name)
	if err != nil {
		return nil, fmt.Errorf("%w, or to compare with one of %s", err, strings.Join(Names(), ", "))
	}
	return policy, nil
}

// Baseline shuffles the upstreams, sorted by address, with a generator seeded
// by the project, and takes the first. A project keeps its upstream as long as
// the set of eligible upstreams stays the same. When one of them leaves or
// joins, most projects move. A job without a project goes to a random upstream.
//
// Source: the thesis, 4.1 and 9.2.1. Weakness: it sees neither load nor caches.
type Baseline struct{}

// Pick implements selection.Policy.
func (Baseline) Pick(job selection.Job, views []selection.View, rng *rand.Rand) int {
	if job.Project == 0 {
		return rng.IntN(len(views))
	}
	var pcg rand.PCG
	pcg.Seed(job.Project, 0)
	// The first draw of Fisher and Yates's shuffle alone decides which view is
	// first. It is a remainder, as in the thesis. The product that rand.IntN
	// takes would keep neighbouring upstreams when one leaves, which no shuffle does.
	return int(pcg.Uint64() % uint64(len(views)))
}

// RoundRobin takes the upstreams in turn, by the number of the claim. Sidecars
// that start counting at different numbers do not march in step.
//
// Source: Zhu, Smith and Yang's Flat-R. Weakness: it sees neither load nor
// caches nor weights.
type RoundRobin struct{}

// Pick implements selection.Policy.
func (RoundRobin) Pick(job selection.Job, views []selection.View, _ *rand.Rand) int {
	return int(job.Number % uint64(len(views)))
}
