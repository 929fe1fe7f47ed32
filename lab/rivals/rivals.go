// Package rivals has host selection policies that those of package selection are compared
// with: the policies of other systems and of publications. Each has a weakness that its
// comment names. None is meant for production.
package rivals

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"example.org/pilotfish/pkg/selection"
)

// Names lists the policies of this package.
func Names() []string {
	return []string{"round-robin", "cache-threshold", "sticky-until", "p2c-ewma", "reported-hash", "heft",
		"home-step", "stretch", "master-slave", "master-slave-ns", "master-slave-nr", "reserve", "high-first", "plan"}
}

// All lists every policy that New knows: package selection's, then this package's.
func All() []string { return slices.Concat(selection.Names(), Names()) }

// New returns the policy of that name, from this package or from package
// selection, with its default parameters. The error for an unknown name lists
// the known names.
func New(name string) (selection.Policy, error) {
	if policy, ok := map[string]selection.Policy{
		"round-robin": RoundRobin{}, "cache-threshold": CacheThreshold{}, "sticky-until": StickyUntil{}, "p2c-ewma": P2CEWMA{},
		"reported-hash": ReportedHash{}, "heft": HEFT{}, "home-step": HomeStep{}, "stretch": Stretch{}, "reserve": Reserve{}.ForSidecar(1), "high-first": HighFirst{}, "plan": new(Plan),
		"master-slave": &MasterSlave{Sampled: true, Reserved: true}, "master-slave-ns": &MasterSlave{Reserved: true}, "master-slave-nr": &MasterSlave{Sampled: true},
	}[name]; ok {
		return policy, nil
	}
	policy, err := selection.New(name)
	if err != nil {
		return nil, fmt.Errorf("%w, or a policy to compare with: %s", err, strings.Join(Names(), ", "))
	}
	return policy, nil
}

// RoundRobin takes the upstreams in turn, by the number of the claim. Sidecars
// start to count at different numbers, so they do not all choose the same upstream.
//
// Source: Zhu, Smith and Yang's Flat-R. Weakness: it ignores load,
// caches and weights.
type RoundRobin struct{}

// Pick implements selection.Policy.
func (RoundRobin) Pick(job selection.Job, views []selection.View, _ *rand.Rand) int {
	return int(job.Number % uint64(len(views)))
}

// SGLang's thresholds: the load is uneven if the highest number of jobs at an upstream exceeds
// the lowest by more than unevenBy jobs and by more than a factor of unevenTimes.
const (
	unevenBy    = 64
	unevenTimes = 1.5
)

// CacheThreshold balances the load as long as this sidecar's jobs are spread
// unevenly over the upstreams. Otherwise it follows the caches: cached before
// assumed cached. Among equals, and for a project that is cached nowhere, it
// takes the upstream with the fewest jobs of this sidecar. A job without a
// project only balances.
//
// Source: SGLang's cache_aware router, with its thresholds of 64 and 1.5 and
// its choice of the least loaded on a miss. Weaknesses: one crowded upstream
// turns affinity off for all projects, and thresholds on own counts mean
// something else with another number of sidecars.
type CacheThreshold struct {
	// By replaces the threshold of 64 jobs; 0 leaves it.
	By float64
}

// Pick implements selection.Policy.
func (c CacheThreshold) Pick(job selection.Job, views []selection.View, rng *rand.Rand) int {
	best, lowest, highest := selection.NotCached, views[0].OwnLoad(), views[0].OwnLoad()
	for i := range views {
		load := views[i].OwnLoad()
		lowest, highest = min(lowest, load), max(highest, load)
		best = max(best, views[i].Cache)
	}
	if job.Project == 0 || highest-lowest > cmp.Or(c.By, unevenBy) && highest > unevenTimes*lowest {
		best = selection.NotCached
	}
	var fewest selection.Least
	for i := range views {
		if views[i].Cache >= best {
			fewest.Offer(i, views[i].OwnLoad(), rng)
		}
	}
	return fewest.Index()
}

// The parameters of StickyUntil.
const (
	// stickyWarm is the probability from which on a project counts as cached.
	stickyWarm = 0.8
	// stickyBound is by how many seconds the best cached upstream may exceed
	// the best other.
	stickyBound = 18
)

// StickyUntil stays on the upstreams where the project is cached. It considers
// all upstreams only when even the best of those is estimated to take 18 s
// longer than the best other. Of the upstreams that it considers, it takes the
// one with the least time: that of the jobs there, by its rate, and that of
// what the job must fetch. A job without a project considers all upstreams.
//
// Source: llm-d's guides ("sticky until saturated": a match of at least 0.8,
// the bound of 18 s, then the least uncached work). Weakness: the bound is the
// same for every project, whatever its fetch costs.
type StickyUntil struct{}

// Pick implements selection.Policy.
func (StickyUntil) Pick(job selection.Job, views []selection.View, rng *rand.Rand) int {
	cached, other := math.Inf(1), math.Inf(1)
	for i := range views {
		v := &views[i]
		if v.Warm >= stickyWarm {
			cached = min(cached, v.Jobs/job.Rate(v))
		} else {
			other = min(other, v.Jobs/job.Rate(v))
		}
	}
	// Where the project is cached nowhere, cached is infinite and nothing sticks.
	sticky := job.Project != 0 && cached-other <= stickyBound
	var lowest selection.Least
	for i := range views {
		v := &views[i]
		if sticky && v.Warm < stickyWarm {
			continue
		}
		cost := v.Jobs / job.Rate(v)
		if job.Project != 0 {
			cost += (1 - v.Warm) * job.Fetch
		}
		lowest.Offer(i, cost, rng)
	}
	return lowest.Index()
}
