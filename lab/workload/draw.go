package workload

import (
	"math"
	"math/rand/v2"
	"sort"
)

// stream names a subsystem's own random source. So the draws of one subsystem do
// not change those of another.
type stream uint64

const (
	streamPopulation stream = iota + 1
	streamSchedules
	streamExports
	streamSessions
	streamArrivals
	streamJobs
	streamSources
	streamCrowds
	streamNeeds
)

// source returns the source of a stream; n tells the sources of one subsystem apart.
func source(seed uint64, s stream, n int) *rand.PCG {
	return rand.NewPCG(seed, uint64(s)<<48|uint64(n))
}

// logNormal draws exp(N(ln median, spread)): spread is the standard deviation
// of the logarithm.
func logNormal(rng *rand.Rand, median, spread float64) float64 {
	return median * math.Exp(spread*rng.NormFloat64())
}

// pareto draws from the Pareto distribution with this median. A small index makes
// a heavy tail: the mean is infinite at 1, the variance at 2.
func pareto(rng *rand.Rand, median, index float64) float64 {
	return median * math.Pow(2*(1-rng.Float64()), -1/index)
}

// rounded rounds to a microsecond, which keeps traces short.
func rounded(s float64) float64 { return math.Round(s*1e6) / 1e6 }

// instant rounds down to a microsecond: no job leaves the duration.
func instant(s float64) float64 { return math.Floor(s*1e6) / 1e6 }

// chooser picks indices in proportion to weights.
type chooser struct{ sums []float64 }

func (c *chooser) add(weight float64) {
	sum := weight
	if n := len(c.sums); n > 0 {
		sum += c.sums[n-1]
	}
	c.sums = append(c.sums, sum)
}

func (c *chooser) pick(rng *rand.Rand) int {
	at := rng.Float64() * c.sums[len(c.sums)-1]
	return min(sort.Search(len(c.sums), func(i int) bool { return c.sums[i] > at }), len(c.sums)-1)
}
