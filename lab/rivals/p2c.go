package rivals

import (
	"math/rand/v2"

	"example.org/pilotfish/pkg/selection"
)

// P2CEWMA draws two different upstreams. It multiplies the recent latency of
// each by this sidecar's jobs there, the new one included, and takes the
// upstream with the lower product. If one of the latencies is unknown, it
// takes the upstream with fewer jobs: a latency of 0 would draw every job to a
// new upstream.
//
// Source: Linkerd's and Finagle's peak EWMA over Mitzenmacher's power of two
// choices. Use it for many short jobs of similar length, before upstreams that report
// nothing: its cost does not depend on the number of upstreams. Weaknesses: it sees no caches,
// and its estimate is poor if times to first byte differ by a factor of a thousand.
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

// pending is this sidecar's jobs at the upstream divided by its weight, the new one included.
func pending(v *selection.View) float64 {
	with := *v
	with.InFlight++
	return with.OwnLoad()
}
