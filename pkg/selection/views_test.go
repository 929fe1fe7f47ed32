package selection

import (
	"math"
	"math/rand/v2"
)

// oneOf returns one of the values at random.
func oneOf[T any](rng *rand.Rand, values ...T) T {
	return values[rng.IntN(len(values))]
}

// randomViews makes n views whose fields are small numbers, so that ties are
// frequent, with zeros, infinities where they are allowed, and large ones.
func randomViews(rng *rand.Rand, n int) []View {
	views := make([]View, n)
	sameWeight := rng.IntN(2) == 0
	for i := range views {
		v := &views[i]
		v.ID = rng.Uint64()
		v.Weight = 1
		if !sameWeight {
			v.Weight = oneOf(rng, 0, 0.5, 1, 2, 10)
		}
		v.Cores = oneOf[float64](rng, 0, 1, 8, 40)
		v.Cache = Cache(rng.IntN(3))
		v.Warm = oneOf(rng, 0, 0.2, 0.49, 0.5, 0.95, 1)
		v.FetchFactor = oneOf(rng, 0, 0.5, 1, 3)
		v.InFlight = oneOf[float64](rng, 0, 0, 1, 2, 3, 50, 500)
		v.Assigned = oneOf(rng, 0, 1, 2, 30, 1e6)
		v.Jobs = oneOf(rng, 0, 1, 7, 8, 9, 38, 60, 1e6)
		v.Stalled = oneOf(rng, 0, 0, 0, 5, 101, 1e6)
		v.Age = oneOf(rng, 0, 0.1, 2.5, 5, 20, math.Inf(1))
		v.Rate = oneOf(rng, 0, 0.05, 2.4, 2.4, 100)
		v.Latency = oneOf(rng, 0, 0.001, 0.3, 0.3, 12, 1e4)
		v.IdleCPU = oneOf(rng, 0, 0.05, 0.3, 0.9, 1)
		v.IdleIO = oneOf(rng, 0, 0.05, 0.3, 0.9, 1)
		v.Uptime = oneOf(rng, 0, 10, 59, 3600, math.Inf(1), math.Inf(1))
		v.Left = oneOf(rng, 0, 1, 600, 3600, 80000, math.Inf(1), math.Inf(1))
	}
	return views
}

// randomJob makes a job with a project.
func randomJob(rng *rand.Rand) Job {
	return Job{
		Project:  rng.Uint64() | 1,
		Priority: Priority(rng.IntN(Priorities)),
		Number:   rng.Uint64N(1000),
		Fetch:    oneOf(rng, 0, 0.5, 5, 5, 30, 1000),
		Busy:     oneOf(rng, 0, 0.3, 0.7, 0.8, 1, 3),
	}
}

// fleet makes n views as they are on a good day: alike, busy, with the project
// cached at two of them.
func fleet(rng *rand.Rand, n int) []View {
	views := make([]View, n)
	for i := range views {
		jobs := 20 + math.Floor(24*rng.Float64())
		views[i] = View{
			ID: rng.Uint64(), Weight: 1, Cores: 40,
			FetchFactor: 1,
			InFlight:    float64(rng.IntN(4)), Assigned: jobs + float64(rng.IntN(9)),
			Jobs: jobs, Stalled: max(0, jobs-40), Age: 5 * rng.Float64(),
			Rate: 2 + rng.Float64(), Latency: 0.2 + rng.ExpFloat64(),
			IdleCPU: 1 - min(1, jobs/40), IdleIO: rng.Float64(),
			Uptime: math.Inf(1), Left: math.Inf(1),
		}
	}
	for range 2 {
		v := &views[rng.IntN(n)]
		v.Cache, v.Warm = Cached, 1
	}
	return views
}
