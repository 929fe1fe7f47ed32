package sim

import (
	"math/rand/v2"

	"example.org/pilotfish/pkg/selection"
)

// reserve keeps cores free for high jobs: low ones see fewer than there are. The
// share that they do not see follows the share of high jobs among those that
// arrive, measured over some hundred jobs. It is made for one sidecar.
//
// Source: Zhu, Smith and Yang reserve master nodes for short requests, and adapt
// their number to measured arrival rates. Here a part of every upstream is
// reserved: whole ones would lose the caches there.
type reserve struct {
	selection.Policy
	weight float64 // of the measured share; 1 reserves as much
	high   float64 // the share of high jobs
	views  []selection.View
}

// reserveMemory is how much of the measured share a job changes.
const reserveMemory = 1.0 / 200

// Pick implements selection.Policy.
func (r *reserve) Pick(job selection.Job, views []selection.View, rng *rand.Rand) int {
	if job.Priority == selection.High {
		r.high += reserveMemory * (1 - r.high)
		return r.Policy.Pick(job, views, rng)
	}
	r.high -= reserveMemory * r.high
	r.views = append(r.views[:0], views...)
	for i := range r.views {
		r.views[i].Cores *= 1 - r.weight*r.high
	}
	return r.Policy.Pick(job, r.views, rng)
}
