package rivals

import (
	"math/rand/v2"
	"slices"

	"example.org/pilotfish/pkg/selection"
)

// HighFirst is the policy expected with waits by priority: if a high job's data is cached at an upstream, and more low
// jobs than the upstream has cores wait there, three quarters of them do not count, because the high job overtakes them.
//
// Source: the thesis, 4.3: "no backlog for the job's own priority". Weakness: many waiting low jobs are a sign that long
// joblets and fetches occupy the cores. A high job waits for these, and so does each of its later joblets.
type HighFirst struct{}

// passed is the share of the overtaken jobs that do not count. With 1, high jobs wait even longer.
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
