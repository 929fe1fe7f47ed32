package selection

import "math/rand/v2"

// LeastInFlight takes the upstream with the fewest of this sidecar's own jobs
// for its weight.
//
// Source: Zhu, Smith and Yang's Flat-C; the least-request and leastconn of
// common proxies. Use it where upstreams report nothing. It sees no caches,
// and of the load only this sidecar's share.
type LeastInFlight struct{}

// Pick implements Policy.
func (LeastInFlight) Pick(_ Job, views []View, rng *rand.Rand) int {
	var fewest least
	for i := range views {
		fewest.offer(i, ownLoad(&views[i]), rng)
	}
	return fewest.index
}

// leastWeight stands in for a weight of 0 or less, so that even such an
// upstream's load is a number.
const leastWeight = 1e-9

// ownLoad is this sidecar's jobs there for each unit of weight.
func ownLoad(v *View) float64 {
	return v.InFlight / max(v.Weight, leastWeight)
}
