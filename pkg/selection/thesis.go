package selection

import "math/rand/v2"

// Dynamic prefers upstreams where the project is cached, then those where it
// is assumed cached. Among equals it takes the upstream with the fewest jobs in
// progress: those last reported plus those assigned since. A job without a
// project goes to a random upstream, as in the thesis.
//
// Source: the thesis, 9.2.3. Use it where upstreams report their caches, but fetch times and rates are unknown. Combine
// it with the threshold detector: without overload detection, jobs wait at an upstream that has their project cached,
// however crowded it is.
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
	var fewest Least
	for i := range views {
		if views[i].Cache == best {
			fewest.Offer(i, views[i].Assigned, rng)
		}
	}
	return fewest.Index()
}

// Random picks any eligible upstream, each with the same probability.
//
// Source: the thesis, 9.2.2. Use it for jobs that need no project data, where upstreams report nothing. With other
// jobs, every upstream must fetch all data.
type Random struct{}

// Pick implements Policy.
func (Random) Pick(_ Job, views []View, rng *rand.Rand) int {
	return rng.IntN(len(views))
}

// Baseline shuffles the upstreams, sorted by address, with a generator seeded
// by the project, and takes the first. A project keeps its upstream as long as
// the set of eligible upstreams stays the same. When one of them leaves or
// joins, most projects move. A job without a project goes to a random upstream.
//
// Source: the thesis, 4.1 and 9.2.1: what Channable ran before. Use it as a shadow policy, to compare with. It ignores
// load and caches.
type Baseline struct{}

// Pick implements Policy.
func (Baseline) Pick(job Job, views []View, rng *rand.Rand) int {
	if job.Project == 0 {
		return rng.IntN(len(views))
	}
	var pcg rand.PCG
	pcg.Seed(job.Project, 0)
	// Only the first draw of a Fisher-Yates shuffle decides which view is first. The draw is a remainder, as in the
	// thesis. With rand.IntN, which multiplies instead, many projects would keep their upstream or move to a neighbour
	// when one leaves: unlike a shuffle.
	return int(pcg.Uint64() % uint64(len(views)))
}
