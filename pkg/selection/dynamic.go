package selection

import "math/rand/v2"

// Dynamic prefers upstreams where the project is cached to those where it is
// assumed cached to all others, and among equals the one with the fewest jobs
// in progress: those last reported plus those assigned since.
//
// Source: the thesis, 9.2.3; its best results are with the threshold
// detector, which is what ends the wait for a crowded cached upstream. Use it
// where upstreams report their caches but neither fetch times nor rates are
// known. A job without a project goes to a random upstream, as there.
type Dynamic struct{}

// Pick implements Policy.
func (Dynamic) Pick(job Job, views []View, rng *rand.Rand) int {
	if job.Project == 0 {
		return rng.IntN(len(views))
	}
	best := NotCached
	for i := range views {
		best = max(best, views[i].Cache)
	}
	var fewest least
	for i := range views {
		if views[i].Cache == best {
			fewest.offer(i, views[i].Assigned, rng)
		}
	}
	return fewest.index
}
