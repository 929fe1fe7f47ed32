package rivals

import (
	"math/rand/v2"

	"example.org/pilotfish/pkg/selection"
)

// Reserve is the policy expected with cores reserved for high jobs: for a low job, each upstream's number of cores is
// reduced by the share of high jobs among the last few hundred jobs.
//
// Source: Zhu, Smith and Yang reserve master nodes for short requests, and adapt their number to measured rates. Here a
// part of every upstream is reserved, so that no cache is lost to low jobs. Weakness: the reserved cores idle between two high jobs.
type Reserve struct {
	expected *selection.Expected
	high     float64 // the share of high jobs
	seen     []selection.View
}

// ForSidecar returns the policy of one of several sidecars, which measures its own jobs.
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
