package stats

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// zero is the value below which a sketch counts everything as zero: a
// nanosecond, if values are seconds.
const zero = 1e-9

// sketch counts values in buckets whose bounds grow geometrically. So every
// percentile is right within a relative error, whatever the distribution:
// DDSketch (Masson, Rim and Lee, VLDB 2019). The number of buckets grows with
// the range of the values: some 5,000 for an error of 0.5 % and values from a
// nanosecond to centuries.
type sketch struct {
	// gamma is the ratio of a bucket's upper bound to its lower one, growth is
	// ln(gamma).
	growth float64
	gamma  float64
	// zeros counts the values below zero. counts has those of bucket k, which holds
	// (gamma^(k-1), gamma^k].
	zeros  uint64
	counts map[int]uint64
	total  uint64
}

// newSketch returns a sketch whose percentiles are right within a relative
// error, such as 0.005 for half a percent.
func newSketch(relative float64) *sketch {
	gamma := (1 + relative) / (1 - relative)
	return &sketch{growth: math.Log(gamma), gamma: gamma, counts: map[int]uint64{}}
}

// add counts a value. It panics when that is negative, infinite or no number.
func (s *sketch) add(value float64) {
	if !(value >= 0 && value <= math.MaxFloat64) {
		panic(fmt.Sprintf("BUG: stats: %v is not a finite value of at least 0", value))
	}
	s.total++
	if value < zero {
		s.zeros++
		return
	}
	s.counts[int(math.Ceil(math.Log(value)/s.growth))]++
}

// merge adds everything that other, a sketch of the same error, has counted.
func (s *sketch) merge(other *sketch) {
	s.total += other.total
	s.zeros += other.zeros
	for k, n := range other.counts {
		s.counts[k] += n
	}
}

// quantile returns the value of rank ceil(q x count), counted from the
// smallest, within the sketch's error; 0 when there are no values.
func (s *sketch) quantile(q float64) float64 {
	rank := max(1, uint64(math.Ceil(q*float64(s.total))))
	seen := s.zeros
	if rank <= seen {
		return 0
	}
	for _, k := range slices.Sorted(maps.Keys(s.counts)) {
		if seen += s.counts[k]; rank <= seen {
			// The point whose relative distance from both bounds is the same.
			return 2 * math.Exp(float64(k)*s.growth) / (1 + s.gamma)
		}
	}
	return 0
}
