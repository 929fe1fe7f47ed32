package selection

import "math/rand/v2"

// When CacheThreshold finds the load uneven: the highest in-flight exceeds the
// lowest by more than unevenBy jobs and by more than a factor of unevenTimes.
const (
	unevenBy    = 64
	unevenTimes = 1.5
)

// CacheThreshold balances while this sidecar's jobs are spread unevenly over
// the upstreams, and follows the caches while they are not: cached before
// assumed cached. Among equals, and for a project cached nowhere, it takes the
// upstream with the fewest jobs of this sidecar.
//
// Source: SGLang's cache_aware router, with its thresholds of 64 and 1.5 and
// its choice of the least loaded on a miss. Use it to compare with: one
// crowded upstream turns affinity off for all projects, and thresholds on own
// counts shift with the number of sidecars. A job without a project only
// balances.
type CacheThreshold struct{}

// Pick implements Policy.
func (CacheThreshold) Pick(job Job, views []View, rng *rand.Rand) int {
	best, lowest, highest := NotCached, ownLoad(&views[0]), ownLoad(&views[0])
	for i := range views {
		load := ownLoad(&views[i])
		lowest, highest = min(lowest, load), max(highest, load)
		best = max(best, views[i].Cache)
	}
	if job.Project == 0 || highest-lowest > unevenBy && highest > unevenTimes*lowest {
		best = NotCached
	}
	var fewest least
	for i := range views {
		if views[i].Cache >= best {
			fewest.offer(i, ownLoad(&views[i]), rng)
		}
	}
	return fewest.index
}
