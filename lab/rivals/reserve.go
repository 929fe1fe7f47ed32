package rivals

import (
	"math/rand/v2"

	"example.org/pilotfish/pkg/selection"
)

// Reserve is the policy expected, with cores kept free for high jobs: low ones see fewer than there are, less the
// share of high jobs among those that come, measured over some hundred.
//
// Source: Zhu, Smith and Yang reserve master nodes for short requests, and adapt their number to measured rates. Here a
// part of every upstream is reserved: whole ones would lose the caches there. Weakness: what is reserved is idle between two high jobs.
type Reserve struct {
	expected *selection.Expected
	high     float64 // the share of high jobs
	seen     []selection.View
}

// ForSidecar is the policy of one of several sidecars, which measures its own jobs.
func (Reserve) ForSidecar(int) selection.Policy {
	return &Reserve{expected: selection.DefaultExpected()}
}

// Pick implements selection.Policy.
func (r *Reserve) Pick(job selection.Job, views []selection.View, rng *rand.Rand) int {
	high := job.Priority == selection.High
	r.high += sample * (truth(high) - r.high)
	if high {
		return r.expected.Pick(job, views, rng)
	}
	r.seen = append(r.seen[:0], views...)
	for i := range r.seen {
		r.seen[i].Cores *= 1 - r.high
	}
	return r.expected.Pick(job, r.seen, rng)
}
