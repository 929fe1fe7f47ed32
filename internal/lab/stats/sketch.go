package stats

import (
	"fmt"
	"math"
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
	// zeros counts the values below zero. counts[i] counts those of bucket
	// first+i; bucket k holds (gamma^(k-1), gamma^k].
	zeros  uint64
	first  int
	counts []uint64
	total  uint64
}

// newSketch returns a sketch whose percentiles are right within a relative
// error, such as 0.005 for half a percent. It panics unless the error lies
// between 0 and 1.
func newSketch(relative float64) *sketch {
	if !(relative > 0 && relative < 1) {
		panic(fmt.Sprintf("stats: a relative error of %v is not between 0 and 1", relative))
	}
	gamma := (1 + relative) / (1 - relative)
	return &sketch{growth: math.Log(gamma), gamma: gamma}
}

// add counts a value. It panics when that is negative, infinite or no number.
func (s *sketch) add(value float64) {
	if !(value >= 0 && value <= math.MaxFloat64) {
		panic(fmt.Sprintf("stats: %v is not a finite value of at least 0", value))
	}
	s.total++
	if value < zero {
		s.zeros++
		return
	}
	*s.bucket(int(math.Ceil(math.Log(value) / s.growth)))++
}

// bucket returns the counter of bucket k, and makes room for it.
func (s *sketch) bucket(k int) *uint64 {
	switch {
	case len(s.counts) == 0:
		s.first = k
		s.counts = make([]uint64, 1, 64)
	case k < s.first:
		// Make room below for as many again: falling values then cost few copies.
		grown := s.first - k + len(s.counts)
		counts := make([]uint64, grown+len(s.counts))
		copy(counts[grown:], s.counts)
		s.first, s.counts = s.first-grown, counts
	case k >= s.first+len(s.counts):
		s.counts = append(s.counts, make([]uint64, k-s.first-len(s.counts)+1)...)
	}
	return &s.counts[k-s.first]
}

// merge adds everything that other has counted. It panics when the two have
// different errors.
func (s *sketch) merge(other *sketch) {
	if s.growth != other.growth {
		panic("stats: sketches of different errors do not merge")
	}
	s.total += other.total
	s.zeros += other.zeros
	for i, n := range other.counts {
		if n > 0 {
			*s.bucket(other.first + i) += n
		}
	}
}

// quantile returns the value of rank ceil(q x count), counted from the
// smallest, within the sketch's error; 0 when there are no values. It panics
// unless q is between 0 and 1.
func (s *sketch) quantile(q float64) float64 {
	if !(q >= 0 && q <= 1) {
		panic(fmt.Sprintf("stats: quantile %v is not between 0 and 1", q))
	}
	rank := max(1, uint64(math.Ceil(q*float64(s.total))))
	seen := s.zeros
	if rank <= seen {
		return 0
	}
	for i, n := range s.counts {
		if seen += n; rank <= seen {
			// The point whose relative distance from both bounds is the same.
			return 2 * math.Exp(float64(s.first+i)*s.growth) / (1 + s.gamma)
		}
	}
	return 0
}
