package selection

import "math/rand/v2"

// Random takes any eligible upstream, all with the same probability.
//
// Source: the thesis, 9.2.2. Use it for jobs that need no project data, where
// nothing is known of the upstreams; for others it fetches all data everywhere.
type Random struct{}

// Pick implements Policy.
func (Random) Pick(_ Job, views []View, rng *rand.Rand) int {
	return rng.IntN(len(views))
}
