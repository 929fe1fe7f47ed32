package rivals

import (
	"cmp"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/lab/trace"
	"example.org/pilotfish/pkg/selection"
)

// Plan assigns each project to one upstream before the first job arrives. It takes the projects by the total work of their
// jobs, the largest first, and assigns each to the upstream with the least work so far. A job whose upstream is not
// eligible, or whose project is not in the plan, goes to a random one.
//
// Source: Ulita's caching plan (2020), which the thesis describes (5.1). Weaknesses: it must know all jobs in advance, and
// a project has only one upstream, even in a burst.
type Plan struct {
	home map[uint64]uint64 // the upstream of a project
}

// Know makes the plan for the given future jobs.
func (p *Plan) Know(jobs iter.Seq[trace.Job], addresses []string) {
	work := map[uint64]float64{}
	for job := range jobs {
		work[intake.Key(string(job.Project))] += job.Work() - job.Load
	}
	p.home = map[uint64]uint64{}
	full := make([]float64, len(addresses))
	projects := slices.SortedFunc(maps.Keys(work), func(a, b uint64) int {
		return cmp.Or(cmp.Compare(work[b], work[a]), cmp.Compare(a, b))
	})
	for _, project := range projects {
		at := slices.Index(full, slices.Min(full))
		full[at] += work[project]
		p.home[project] = selection.UpstreamID(addresses[at])
	}
}

// Pick implements selection.Policy.
func (p *Plan) Pick(job selection.Job, views []selection.View, rng *rand.Rand) int {
	if home, ok := p.home[job.Project]; ok {
		if at := slices.IndexFunc(views, func(v selection.View) bool { return v.ID == home }); at >= 0 {
			return at
		}
	}
	return rng.IntN(len(views))
}
