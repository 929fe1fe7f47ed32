package selection

import "math/rand/v2"

// Dynamic prefers upstreams where the project is cached, then those where it
// is assumed cached. Among equals it takes the upstream with the fewest jobs in
// progress: those last reported plus those assigned since. A job without a
// project goes to a random upstream, as in the thesis.
//
// Source: the thesis, 9.2.3. Use it where upstreams report their caches, but
// neither fetch times nor rates are known, and with the threshold detector:
// without one, jobs wait for a cached upstream however crowded it is.
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

// Random takes any eligible upstream, all with the same probability.
//
// Source: the thesis, 9.2.2. Use it for jobs that need no project data, where
// nothing is known of the upstreams. For others it fetches all data everywhere.
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
// Source: the thesis, 4.1 and 9.2.1: what Channable ran before. Use it as a shadow, to compare
// with. It sees neither load nor caches.
type Baseline struct{}

// Pick implements Policy.
func (Baseline) Pick(job Job, views []View, rng *rand.Rand) int {
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
