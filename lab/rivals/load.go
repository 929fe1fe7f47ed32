package rivals

import (
	"cmp"
	"math"
	"math/rand/v2"

	"example.org/pilotfish/pkg/selection"
)

// usualCores is assumed for an upstream whose number of cores is unknown.
const usualCores = 8

func coresOf(v *selection.View) float64 { return cmp.Or(v.Cores, usualCores) }

// ReportedHash is selection.BoundedHash with the reported load per core instead of this sidecar's own
// jobs. It takes the first upstream in the project's rendezvous order that has fewer jobs than Factor times its share of
// all jobs, the new one included. A job without a project goes to the upstream with the fewest jobs per core.
//
// Source: Mirrokni, Thorup and Zadimoghaddam's bounded loads; SGLang and AIBrix apply them to the servers' own counts.
// Weaknesses: reports are as old as their interval, and the bound does not weigh a fetch against a wait.
type ReportedHash struct {
	// Factor is the bound as a multiple of the mean load per core; 0 is 1.5.
	Factor float64
}

// Pick implements selection.Policy.
func (r ReportedHash) Pick(job selection.Job, views []selection.View, rng *rand.Rand) int {
	jobs, cores := 1.0, 0.0
	for i := range views {
		jobs, cores = jobs+views[i].Jobs, cores+coresOf(&views[i])
	}
	first, best := -1, -1.0
	var fewest selection.Least
	for i := range views {
		v := &views[i]
		fewest.Offer(i, v.Jobs/coresOf(v), rng)
		if v.Jobs >= math.Ceil(cmp.Or(r.Factor, 1.5)*jobs*coresOf(v)/cores) {
			continue
		}
		if score := selection.Rendezvous(job.Project, v.ID, v.Weight); score > best {
			first, best = i, score
		}
	}
	if job.Project == 0 || first < 0 {
		return fewest.Index()
	}
	return first
}

// HEFT takes the upstream where the job is expected to start first: after the wait for a core and the fetch of the data
// that is not cached. It has no constant.
//
// Source: Topcuoglu, Hariri and Wu's earliest finish time (2002), which Dask uses to choose workers. Weaknesses: it
// counts each fetch in full, although later jobs also use the data; and sidecars with equal reports choose the same upstream.
type HEFT struct{}

// Pick implements selection.Policy.
func (HEFT) Pick(job selection.Job, views []selection.View, rng *rand.Rand) int {
	var first selection.Least
	for i := range views {
		v := &views[i]
		starts := max(0, v.Jobs-v.BlockedJobs+1-coresOf(v)) / job.Rate(v)
		if job.Project != 0 {
			starts += (1 - v.Warm) * job.Fetch
		}
		first.Offer(i, starts, rng)
	}
	return first.Index()
}
