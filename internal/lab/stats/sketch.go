// Package stats turns what happened to jobs into the numbers and tables by
// which policies are compared: percentiles, slowdown, stretch, variance of the
// wait per upstream, imbalance, and paired comparisons. Its memory does not
// grow with the number of jobs. The simulator and the replay share it.
package stats

import (
	"fmt"
	"math"
)

// smallest is the value below which a Sketch calls everything zero: a
// nanosecond, if values are seconds.
const smallest = 1e-9

// Sketch counts values in buckets whose bounds grow geometrically, so that
// every percentile is right within a relative error, whatever the
// distribution: DDSketch (Masson, Rim and Lee, VLDB 2019) with a store that
// grows to the range of the values, some 5,000 buckets for an error of 0.5 %
// and values from a nanosecond to centuries.
type Sketch struct {
	// growth is ln(gamma): a bucket ends gamma times higher than it begins.
	growth float64
	gamma  float64
	// zeros counts values below smallest; counts[i] those of bucket first+i,
	// which holds (gamma^(k-1), gamma^k] for its number k.
	zeros  uint64
	first  int
	counts []uint64
	total  uint64
}

// NewSketch returns a sketch whose percentiles are right within a relative
// error, such as 0.005 for half a percent. It panics unless the error lies
// between 0 and 1.
func NewSketch(relative float64) *Sketch {
	if !(relative > 0 && relative < 1) {
		panic(fmt.Sprintf("stats: a relative error of %v is not between 0 and 1", relative))
	}
	gamma := (1 + relative) / (1 - relative)
	return &Sketch{growth: math.Log(gamma), gamma: gamma}
}

// Add counts a value. It panics when that is negative, infinite or no number:
// times and ratios never are.
func (s *Sketch) Add(value float64) {
	if !(value >= 0 && value <= math.MaxFloat64) {
		panic(fmt.Sprintf("stats: %v is not a finite value of at least 0", value))
	}
	s.total++
	if value < smallest {
		s.zeros++
		return
	}
	*s.bucket(int(math.Ceil(math.Log(value) / s.growth)))++
}

// bucket returns the counter of bucket k, and makes room for it.
func (s *Sketch) bucket(k int) *uint64 {
	switch {
	case len(s.counts) == 0:
		s.first = k
		s.counts = make([]uint64, 1, 64)
	case k < s.first:
		// Room below for as much again, lest falling values cost a copy each.
		grown := s.first - k + len(s.counts)
		counts := make([]uint64, grown+len(s.counts))
		copy(counts[grown:], s.counts)
		s.first, s.counts = s.first-grown, counts
	case k >= s.first+len(s.counts):
		s.counts = append(s.counts, make([]uint64, k-s.first-len(s.counts)+1)...)
	}
	return &s.counts[k-s.first]
}

// Merge adds everything that other counted. It panics when the two have
// different errors.
func (s *Sketch) Merge(other *Sketch) {
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

// Count is how many values there were.
func (s *Sketch) Count() uint64 { return s.total }

// Quantile returns the value of rank ceil(q x count), counted from the
// smallest, within the sketch's error; 0 when there are no values. It panics
// unless q is between 0 and 1.
func (s *Sketch) Quantile(q float64) float64 {
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
			// The point between the bounds that is off by the same share from both.
			return 2 * math.Exp(float64(s.first+i)*s.growth) / (1 + s.gamma)
		}
	}
	return 0
}
