package workload

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
)

// stream numbers the random source of a subsystem. With a source of its own, a subsystem that draws more
// often does not change what the others draw.
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
	streamHot
)

// source returns random source n of a stream.
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

// rounded rounds seconds to a microsecond, which keeps traces short.
func rounded(s float64) float64 { return math.Round(s*1e6) / 1e6 }

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

// hours is the relative load of each hour of a day, from midnight on.
type hours [24]float64

// officeHours is when people work with a web application.
func officeHours() hours {
	return hours{2, 1, 1, 1, 1, 2, 6, 20, 60, 95, 100, 98, 80, 92, 98, 92, 80, 50, 28, 22, 18, 14, 8, 4}
}

// scheduleHours is when schedules run: around the clock. Most run early in the
// morning, because feeds must be fresh then, and fewest late in the evening.
func scheduleHours() hours {
	return hours{70, 68, 72, 80, 88, 95, 100, 98, 95, 92, 90, 88, 86, 86, 86, 84, 82, 78, 74, 70, 66, 64, 64, 66}
}

// at returns the load at an offset in seconds from the start hour, as a share of the peak.
func (h hours) at(offset float64, start int) float64 {
	return h[(start+int(offset/hour))%24] / slices.Max(h[:])
}

// curve is the cumulative distribution of arrivals over a duration, by the hour of the day.
type curve struct {
	duration float64
	// sums[i] is the weight of the first i hours.
	sums []float64
}

func (h hours) curve(duration float64, start int) curve {
	c := curve{duration: duration, sums: []float64{0}}
	for at := 0.0; at < duration; at += hour {
		sum := c.sums[len(c.sums)-1]
		c.sums = append(c.sums, sum+h.at(at, start)*min(hour, duration-at))
	}
	return c
}

// at returns the offset at which the given share of all arrivals, 0 to 1, has happened.
func (c curve) at(share float64) float64 {
	last := len(c.sums) - 1
	weight := share * c.sums[last]
	i := sort.Search(last, func(i int) bool { return c.sums[i+1] > weight })
	if i == last {
		return c.duration
	}
	begin := float64(i) * hour
	length := min(hour, c.duration-begin)
	return begin + length*(weight-c.sums[i])/(c.sums[i+1]-c.sums[i])
}
