package selection

import "math/rand/v2"

// The parameters of StickyUntil.
const (
	// stickyWarm is the probability from which on a project counts as cached.
	stickyWarm = 0.8
	// stickyBound is by how many seconds the best cached upstream may exceed
	// the best other.
	stickyBound = 18
	// stickyCoreRate is jobs per core and second where no rate is known.
	stickyCoreRate = 1.0 / 12
)

// StickyUntil stays on the upstreams where the project is cached until even
// the best of them is estimated to take 18 seconds longer than the best
// other; then all are considered. Of those considered it takes the one with
// the least time for the jobs there, by its rate, and for what the job must
// fetch.
//
// Source: llm-d's guides ("sticky until saturated": a match of at least 0.8,
// the bound of 18 s, then the least uncached work). Use it to compare with:
// it is a time bound like that of Expected, but the same for every project,
// whatever its fetch costs. A job without a project considers all.
type StickyUntil struct{}

// Pick implements Policy.
func (StickyUntil) Pick(job Job, views []View, rng *rand.Rand) int {
	coreRate := meanCoreRate(views, stickyCoreRate)
	cached, other := nobody(), nobody()
	for i := range views {
		v := &views[i]
		if v.Warm >= stickyWarm {
			cached.offer(i, v.Jobs/rateOf(v, coreRate))
		} else {
			other.offer(i, v.Jobs/rateOf(v, coreRate))
		}
	}
	sticky := job.Project != 0 && cached.index != nowhere &&
		(other.index == nowhere || cached.total-other.total <= stickyBound)
	var lowest least
	for i := range views {
		v := &views[i]
		if sticky && v.Warm < stickyWarm {
			continue
		}
		cost := v.Jobs / rateOf(v, coreRate)
		if job.Project != 0 {
			cost += (1 - v.Warm) * job.Fetch
		}
		lowest.offer(i, cost, rng)
	}
	return lowest.index
}
