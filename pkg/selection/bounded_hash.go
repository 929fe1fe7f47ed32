package selection

import (
	"math"
	"math/rand/v2"
)

// boundedFactor is how far above the mean in-flight an upstream may be.
const boundedFactor = 1.5

// BoundedHash takes the first upstream in the project's rendezvous order that
// has no more of this sidecar's jobs than 1.5 times the mean, the new job
// counted in, rounded up, and so never less than one slot. Weights scale the bound. There is
// always one, since the bounds add up to more than the jobs.
//
// Source: Mirrokni, Thorup and Zadimoghaddam's consistent hashing with bounded
// loads, as HAProxy (hash-balance-factor) and Envoy have it. Use it where
// upstreams report nothing and caches matter: it spills a project along the
// same few upstreams, but pays for a fetch at each whether or not that is
// cheaper than to wait. A job without a project goes where fewest are in
// flight.
type BoundedHash struct{}

// Pick implements Policy.
func (BoundedHash) Pick(job Job, views []View, rng *rand.Rand) int {
	if job.Project == 0 {
		return LeastInFlight{}.Pick(job, views, rng)
	}
	total, weights := 1.0, 0.0
	for i := range views {
		total += views[i].InFlight
		weights += max(0, views[i].Weight)
	}
	by := newOrder(job.Project, views)
	first, score := 0, -1.0
	for i := range views {
		v := &views[i]
		if v.InFlight >= slots(v, total, weights, len(views)) {
			continue
		}
		if s := by.score(v, score); s > score {
			first, score = i, s
		}
	}
	return first
}

// slots is how many jobs v may have: its share of all, by weight, with the
// bound's leeway.
func slots(v *View, total, weights float64, n int) float64 {
	share := 1 / float64(n)
	if weights > 0 {
		share = max(0, v.Weight) / weights
	}
	return math.Ceil(boundedFactor * total * share)
}
