package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/lab/trace"
)

// One project floods a fleet that others keep a third busy, or three quarters. Where short jobs go first, and projects
// with few jobs, the others wait less than by arrival. With at most a quarter of each sidecar's jobs in flight while no
// core is free, they wait less than half of that, or a quarter, and none is lost, with one sidecar and with four. Each may
// always have one job of the project in flight. Jobs are not interrupted: where the flood keeps
// all cores busy, no order of one queue before all cores lets others wait less than the bound (Cobham, Priority
// Assignment in Waiting Line Problems, 1954, for jobs of exponential lengths).
func TestFlood(t *testing.T) {
	const servers, cores, work, length = 4, 4, 2.0, 400.0
	wait := func(load float64, flood bool, order string, limit float64, sidecars int) (others, lost float64) {
		rng := rand.New(rand.NewPCG(17, 18))
		var jobs []trace.Job
		add := func(from, to, load float64, project func() string) {
			for at := from; at < to; at += rng.ExpFloat64() * work / (load * servers * cores) {
				jobs = append(jobs, trace.Job{
					Offset: at, Project: trace.Project(project()), Load: 1, Bytes: 25e6, Operators: rng.ExpFloat64() * work,
					Submitter: rng.Int64N(1000), Timeouts: trace.Timeouts{Queue: 240},
				})
			}
		}
		add(0, length, load, func() string { return string('a' + rune(rng.IntN(20))) })
		if flood {
			add(100, 200, 2, func() string { return "flood" })
		}
		slices.SortStableFunc(jobs, func(a, b trace.Job) int { return cmp.Compare(a.Offset, b.Offset) })
		c := setup(t, "expected", "none", servers, cores)
		c.Source, c.Fleet.Order, c.Sidecars.Count, c.Sidecars.Hints = slices.Values(jobs), order, sidecars, true
		c.Sidecars.Projects.Limit, c.WarmUp = limit, 60*time.Second
		n := 0.0
		c.Observe = func(r *Result) {
			if r.Project == intake.Key("flood") {
				return
			}
			n++
			others += r.Wait.Seconds()
			if r.Outcome != Done {
				lost++
			}
		}
		_, err := Run(t.Context(), c)
		require.NoError(t, err)
		return others / n, lost
	}
	for load, less := range map[float64]float64{0.35: 1.5, 0.75: 4} {
		bound := work / (servers * cores) / (1 - load)
		for _, sidecars := range []int{1, 4} {
			before, _ := wait(load, false, expected, 0, sidecars)
			byArrival, _ := wait(load, true, arrival, 0, sidecars)
			without, _ := wait(load, true, expected, 0, sidecars)
			with, lost := wait(load, true, expected, 0.25, sidecars)
			t.Logf("others' load %v, %d sidecars: they wait %.2f s before the flood, %.1f s in it by arrival, %.1f s by expected length, "+
				"and %.2f s with the limit; the bound is %.2f s", load, sidecars, before, byArrival, without, with, bound)
			assert.Less(t, without, byArrival/2)
			assert.Less(t, with, without/less)
			assert.Zero(t, lost)
		}
	}
}
