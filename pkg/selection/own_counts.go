package selection

import "math/rand/v2"

// LeastInFlight takes the upstream with the fewest of this sidecar's own jobs
// for its weight.
//
// Source: Zhu, Smith and Yang's Flat-C; the least-request and leastconn of
// common proxies. Use it where upstreams report nothing. It sees no caches, and
// only this sidecar's share of the load.
type LeastInFlight struct{}

// Pick implements Policy.
func (LeastInFlight) Pick(_ Job, views []View, rng *rand.Rand) int {
	var fewest Least
	for i := range views {
		fewest.Offer(i, views[i].OwnLoad(), rng)
	}
	return fewest.Index()
}

// P2CEWMA draws two different upstreams. It multiplies the recent latency of
// each by this sidecar's jobs there, the new one included, and takes the
// upstream with the lower product. If one of the latencies is not known, it
// takes the upstream with fewer jobs: a latency of 0 would draw every job to a
// new upstream.
//
// Source: Linkerd's and Finagle's peak EWMA over Mitzenmacher's power of two
// choices. Use it where jobs are many, short and alike, and upstreams report
// nothing: it looks at two upstreams, however many there are. It sees no caches,
// and jobs whose times to first byte differ by a factor of a thousand make its
// estimate poor.
type P2CEWMA struct{}

// Pick implements Policy.
func (P2CEWMA) Pick(_ Job, views []View, rng *rand.Rand) int {
	if len(views) == 1 {
		return 0
	}
	a := rng.IntN(len(views))
	b := rng.IntN(len(views) - 1)
	if b >= a {
		b++
	}
	v, w := &views[a], &views[b]
	if v.Latency > 0 && w.Latency > 0 {
		if pending(w)*w.Latency < pending(v)*v.Latency {
			return b
		}
		return a
	}
	if pending(w) < pending(v) {
		return b
	}
	return a
}

// pending is this sidecar's jobs there, the new one included, for each unit of weight.
func pending(v *View) float64 {
	return (v.InFlight + 1) / max(v.Weight, leastWeight)
}
