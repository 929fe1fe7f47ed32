package rivals

import (
	"math/rand/v2"

	"example.org/pilotfish/pkg/selection"
)

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

// Pick implements selection.Policy.
func (P2CEWMA) Pick(_ selection.Job, views []selection.View, rng *rand.Rand) int {
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

// pending is this sidecar's jobs at the upstream for each unit of weight, the new one included.
func pending(v *selection.View) float64 {
	with := *v
	with.InFlight++
	return with.OwnLoad()
}
