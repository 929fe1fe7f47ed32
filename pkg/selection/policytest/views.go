package policytest

import (
	"math"
	"math/rand/v2"

	"example.org/pilotfish/internal/hash"
	"example.org/pilotfish/pkg/selection"
)

// Case makes a job, one in five without a project, and mostly up to nine
// views, sometimes fifty.
func Case(rng *rand.Rand) (selection.Job, []selection.View) {
	job := Job(rng)
	if rng.IntN(5) == 0 {
		job.Project = 0
	}
	n := 1 + rng.IntN(9)
	if rng.IntN(50) == 0 {
		n = 50
	}
	views := Views(rng, n)
	if rng.IntN(4) == 0 { // equal upstreams: only their IDs differ
		for i := range views {
			id := views[i].ID
			views[i] = views[0]
			views[i].ID = id
		}
	}
	return job, views
}

// Job makes a job with a project.
func Job(rng *rand.Rand) selection.Job {
	return selection.Job{
		Project:           rng.Uint64() | 1,
		Priority:          selection.Priority(rng.IntN(selection.Priorities)),
		Number:            rng.Uint64N(1000),
		Fetch:             oneOf(rng, 0, 0.5, 5, 5, 30, 1000),
		OneOffProbability: oneOf(rng, 0, 0, 0, 0.4, 1),
		Open:              float64(oneOf(rng, 0, 0, 1, 3, 40)),
		Service:           oneOf(rng, 0, 0.1, 4, 4, 60),
	}
}

// Views makes n views whose fields are drawn from few numbers, including zeros and
// large numbers, so that ties are frequent.
func Views(rng *rand.Rand, n int) []selection.View {
	views := make([]selection.View, n)
	sameWeight := rng.IntN(2) == 0
	for i := range views {
		v := &views[i]
		v.ID = rng.Uint64()
		v.Weight = 1
		if !sameWeight {
			v.Weight = oneOf(rng, 0, 0.5, 1, 2, 10)
		}
		v.Cores = oneOf[float64](rng, 0, 1, 8, 40)
		v.Cache = selection.Cache(rng.IntN(3))
		v.Warm = oneOf(rng, 0, 0.2, 0.49, 0.5, 0.95, 1)
		v.InFlight = oneOf[float64](rng, 0, 0, 1, 2, 3, 50, 500)
		v.Assigned = oneOf(rng, 0, 1, 2, 30, 1e6)
		v.Jobs = oneOf(rng, 0, 1, 7, 8, 9, 38, 60, 1e6)
		v.BlockedJobs = oneOf(rng, 0, 0, min(v.Jobs, 5), v.Jobs)
		v.Overtaken = oneOf(rng, 0, 0, min(v.Jobs, 3), v.Jobs)
		v.Fresh = rng.IntN(6) > 0
		v.Rate = oneOf(rng, 0, 0.05, 2.4, 2.4, 100)
		v.Latency = oneOf(rng, 0, 0.001, 0.3, 0.3, 12, 1e4)
		v.UntilStop = oneOf(rng, 0, 0, 0.5, 1, 600, 3600, 80000)
	}
	return views
}

// Idle returns n equal, idle upstreams.
func Idle(n int) []selection.View {
	views := make([]selection.View, n)
	for i := range views {
		views[i] = selection.View{
			ID: hash.Mix(uint64(i + 1)), Weight: 1, Cores: 40, Rate: 2.4, Latency: 1,
			Fresh: true,
		}
	}
	return views
}

// Busy makes n upstreams in normal operation: with similar load, and with the
// project cached at up to two of them.
func Busy(rng *rand.Rand, n int) []selection.View {
	views := make([]selection.View, n)
	for i := range views {
		jobs := 20 + math.Floor(24*rng.Float64())
		views[i] = selection.View{
			ID: rng.Uint64(), Weight: 1, Cores: 40,
			InFlight: float64(rng.IntN(4)), Assigned: jobs + float64(rng.IntN(9)),
			Jobs: jobs, Fresh: true,
			Rate: 2 + rng.Float64(), Latency: 0.2 + rng.ExpFloat64(),
		}
	}
	for range 2 {
		v := &views[rng.IntN(n)]
		v.Cache, v.Warm = selection.Cached, 1
	}
	return views
}

// extreme makes a job and up to five views with the smallest and the largest
// numbers of a float64.
func extreme(rng *rand.Rand) (selection.Job, []selection.View) {
	x := func() float64 { return oneOf(rng, 0, math.SmallestNonzeroFloat64, 1, math.MaxFloat64, 1e300) }
	views := make([]selection.View, 1+rng.IntN(5))
	for i := range views {
		views[i] = selection.View{
			ID: rng.Uint64(), Weight: x(), Cores: x(),
			Cache: selection.Cache(rng.IntN(3)), Warm: rng.Float64(),
			InFlight: x(), Assigned: x(), Jobs: x(), Overtaken: x(),
			Fresh: rng.IntN(2) == 0, Rate: x(), Latency: x(),
			UntilStop: x(),
		}
	}
	return selection.Job{
		Project: oneOf(rng, 0, 1, rng.Uint64()), Priority: selection.Priority(rng.IntN(selection.Priorities)),
		Number: rng.Uint64(), Fetch: x(), Service: x(),
	}, views
}

// oneOf returns one of the values at random.
func oneOf[T any](rng *rand.Rand, values ...T) T {
	return values[rng.IntN(len(values))]
}
