package selection

import "math/rand/v2"

// Baseline shuffles the upstreams, sorted by address, with a generator seeded
// by the project, and takes the first. The same project finds the same
// upstream as long as the set of eligible ones stays the same; when one goes
// or comes, most projects move. It sees neither load nor caches.
//
// The shuffle is Fisher and Yates's, whose first draw alone settles the first
// place; the rest of it is not carried out.
//
// Source: the thesis, 4.1 and 9.2.1. Use it to compare with, not to run. A job
// without a project goes to a random upstream.
type Baseline struct{}

// Pick implements Policy.
func (Baseline) Pick(job Job, views []View, rng *rand.Rand) int {
	if job.Project == 0 {
		return rng.IntN(len(views))
	}
	var pcg rand.PCG
	pcg.Seed(job.Project, 0)
	// A remainder, not rand.IntN's product: a product of the same draw would
	// keep close upstreams when the set shrinks by one, which no shuffle does.
	return int(pcg.Uint64() % uint64(len(views)))
}
