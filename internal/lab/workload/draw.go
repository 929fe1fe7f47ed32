package workload

import (
	"math"
	"math/rand/v2"
)

// stream is the name of a subsystem's own source of randomness, so that one
// subsystem's draws do not move another's.
type stream uint64

const (
	streamPopulation stream = iota + 1
	streamSchedules
	streamExports
	streamSessions
	streamArrivals
	streamJobs
)

// source returns the source of a stream; n tells apart those of one subsystem.
func source(seed uint64, s stream, n int) *rand.PCG {
	return rand.NewPCG(seed, uint64(s)<<48|uint64(n))
}

// logNormal draws exp(N(ln median, spread)): spread is the standard deviation
// of the logarithm.
func logNormal(rng *rand.Rand, median, spread float64) float64 {
	return median * math.Exp(spread*rng.NormFloat64())
}

// seconds rounds to a microsecond, which keeps traces short.
func seconds(s float64) float64 { return math.Round(s*1e6) / 1e6 }

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
	low, high := 0, len(c.sums)-1
	for low < high {
		mid := (low + high) / 2
		if c.sums[mid] > at {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}
