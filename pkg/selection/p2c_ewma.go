package selection

import "math/rand/v2"

// P2CEWMA draws two different upstreams and takes the one whose recent
// latency times the jobs it has from this sidecar, the new one counted in, is
// lower. As long as one's latency is not known, in-flight alone decides: a
// guess of 0 would draw every job to the newcomer.
//
// Source: Linkerd's and Finagle's peak EWMA over Mitzenmacher's power of two
// choices. Use it where jobs are alike, many and short, and upstreams report
// nothing: it needs two looks, whatever the number of upstreams. Neither
// caches nor projects count, and times to first byte that differ by factors of
// a thousand from job to job make a poor estimate.
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

// pending is this sidecar's jobs there with the new one, for each unit of weight.
func pending(v *View) float64 {
	return (v.InFlight + 1) / max(v.Weight, leastWeight)
}
