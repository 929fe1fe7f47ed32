package selection

import (
	"math"
	"math/rand/v2"
)

// boundedFactor is the usual BoundedHash.Factor.
const boundedFactor = 1.5

// BoundedHash takes the first upstream in the project's rendezvous order that
// is below its bound. The bound is Factor times the mean of this sidecar's jobs,
// the new one included, rounded up; weights scale it. There always is such an
// upstream, since the bounds add up to more than the jobs. A job without a
// project goes where the fewest jobs are in flight.
//
// Source: Mirrokni, Thorup and Zadimoghaddam's consistent hashing with bounded
// loads, as HAProxy (hash-balance-factor) and Envoy have it. Use it where
// upstreams report nothing and caches matter: it spreads a busy project over the
// same few upstreams. It does not weigh a fetch there against a wait.
type BoundedHash struct {
	// Factor times the mean is the maximum number of jobs of an upstream. 0
	// is 1.5, and less than 1 counts as 1.
	Factor float64
}

// Pick implements Policy.
func (b BoundedHash) Pick(job Job, views []View, rng *rand.Rand) int {
	if job.Project == 0 {
		return LeastInFlight{}.Pick(job, views, rng)
	}
	i, _ := b.first(job, views, func(*View) bool { return true })
	return i
}

// first is the first view in the project's rendezvous order that may
// serve and is below its bound; ok is false if there is none.
func (b BoundedHash) first(job Job, views []View, may func(v *View) bool) (first int, ok bool) {
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
	score := -1.0
	for i := range views {
		v := &views[i]
		if !may(v) || v.InFlight >= slots(v, factor*total, weights, len(views)) {
			continue
		}
		if s := by.score(v, score); s > score {
			first, score, ok = i, s, true
		}
	}
	return first, ok
}

// slots is the bound of v: how many of the jobs it may have.
func slots(v *View, jobs, weights float64, n int) float64 {
	share := 1 / float64(n)
	if weights > 0 {
		share = max(0, v.Weight) / weights
	}
	return math.Ceil(jobs * share)
}
