package rivals

import (
	"math/rand/v2"
	"slices"

	"example.org/pilotfish/pkg/selection"
)

// HighFirst is the policy expected, with a wait by priority: where its data is cached and more low jobs wait than there are
// cores, a high job does not count three quarters of the low jobs that it overtakes.
//
// Source: the thesis, 4.3: "no backlog for the job's own priority". Weakness: many waiting low jobs show that long joblets
// and fetches hold the cores. A high job waits for these, and so does each of its later joblets.
type HighFirst struct{}

// passed is the share of the overtaken jobs that do not count. With all of them, high jobs wait longer still.
const passed = 0.75

// Pick implements selection.Policy.
func (HighFirst) Pick(job selection.Job, views []selection.View, rng *rand.Rand) int {
	seen := slices.Clone(views)
	for i := range seen {
		if v := &seen[i]; v.Cache == selection.Cached && v.Overtaken > coresOf(v) {
			v.Jobs -= passed * v.Overtaken
		}
	}
	return selection.DefaultExpected().Pick(job, seen, rng)
}
