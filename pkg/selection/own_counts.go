package selection

import "math/rand/v2"

// LeastInFlight picks the upstream with the fewest of this sidecar's own jobs per unit of weight.
//
// Source: Zhu, Smith and Yang's Flat-C; the least-request and leastconn of common proxies. Use it where upstreams
// report nothing. It ignores caches and the jobs of other sidecars.
type LeastInFlight struct{}

// Pick implements Policy.
func (LeastInFlight) Pick(_ Job, views []View, rng *rand.Rand) int {
	var fewest Least
	for i := range views {
		fewest.Offer(i, views[i].OwnLoad(), rng)
	}
	return fewest.Index()
}
