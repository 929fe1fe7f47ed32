package scenario

import (
	"math"
	"math/rand/v2"

	"example.org/pilotfish/pkg/selection"
)

// multiplied is the policy expected with some of its constants multiplied.
type multiplied struct {
	*selection.Expected
	// copies multiplies the number of a project's open jobs at which a further copy costs half a rank more.
	copies float64
}

func multiply(times map[string]float64) *multiplied {
	m := &multiplied{Expected: selection.DefaultExpected(), copies: 1}
	for name, by := range times {
		*m.constants()[name] *= by
	}
	return m
}

// constants returns the constants by name.
func (m *multiplied) constants() map[string]*float64 {
	e := m.Expected
	return map[string]*float64{
		"headroom": &e.Headroom, "fetch": &e.Fetch, "rank": &e.Rank, "crowding": &e.Crowding, "tail": &e.Tail, "copies": &m.copies,
	}
}

// Pick implements selection.Policy.
func (m *multiplied) Pick(job selection.Job, views []selection.View, rng *rand.Rand) int {
	return m.PickWithCosts(job, views, make([]selection.Cost, len(views)), rng)
}

// PickWithCosts implements selection.Coster. The rule compares its constant with the number of open jobs, so a multiple of
// the constant has the same effect as that part of the number.
func (m *multiplied) PickWithCosts(job selection.Job, views []selection.View, costs []selection.Cost, rng *rand.Rand) int {
	job.Open /= m.copies
	if m.copies == 0 { // also without an open job
		job.Open = math.Inf(1)
	}
	return m.Expected.PickWithCosts(job, views, costs, rng)
}
