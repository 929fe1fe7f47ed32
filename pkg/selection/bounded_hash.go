package selection

import (
	"math"
	"math/rand/v2"
)

// boundedFactor is the usual BoundedHash.Factor.
const boundedFactor = 1.5

// BoundedHash takes the first upstream in the project's rendezvous order that is below its bound. The bound is Factor
// times the mean of this sidecar's jobs, the new one included, rounded up; weights scale it. There always is such an
// upstream, since the sum of the bounds exceeds the number of jobs. A job without a project goes to the upstream with
// the fewest jobs in flight.
//
// Source: Mirrokni, Thorup and Zadimoghaddam's consistent hashing with bounded loads, as HAProxy (hash-balance-factor)
// and Envoy have it. Use it where upstreams report nothing and caches matter: it spreads a busy project over the same
// few upstreams. It does not compare the time to fetch data there with the wait elsewhere.
type BoundedHash struct {
	// Factor times the mean number of jobs is the maximum of an upstream. 0 means 1.5; a value below 1 counts as 1.
	Factor float64
}

// Pick implements Policy.
func (b BoundedHash) Pick(job Job, views []View, rng *rand.Rand) int {
	if job.Project == 0 {
		return LeastInFlight{}.Pick(job, views, rng)
	}
	total, weights := 1.0, 0.0
	for i := range views {
		total += views[i].InFlight
		weights += max(0, views[i].Weight)
	}
	factor := boundedFactor
	if b.Factor != 0 {
		factor = max(1, b.Factor)
	}
	by := newOrder(job.Project, views)
	first, score := 0, -1.0
	for i := range views {
		v := &views[i]
		if v.InFlight >= slots(v, factor*total, weights, len(views)) {
			continue
		}
		if s := by.score(v, score); s > score {
			first, score = i, s
		}
	}
	return first
}

// slots returns the bound of v, the maximum number of jobs there.
func slots(v *View, jobs, weights float64, n int) float64 {
	share := 1 / float64(n)
	if weights > 0 {
		share = max(0, v.Weight) / weights
	}
	return math.Ceil(jobs * share)
}
