package stats

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// Values below zero count as 0, in the bucket zeros: below a nanosecond, if values are seconds.
const (
	zero  = 1e-9
	zeros = math.MinInt
)

// Distribution estimates the mean and the percentiles of one quantity. It counts values in buckets
// whose bounds grow geometrically, so that the relative error of every percentile is bounded, whatever the
// distribution: DDSketch (Masson, Rim and Lee, VLDB 2019). The number of buckets grows with the range of the
// values: some 5,000 for an error of 0.5 % and values from a nanosecond to centuries.
type Distribution struct {
	// gamma is the ratio of a bucket's upper bound to its lower one, growth is ln(gamma).
	gamma, growth float64
	// counts[k] is the number of values in bucket k, which is (gamma^(k-1), gamma^k].
	counts                 map[int]uint64
	count                  uint64
	sum, smallest, largest float64
}

// NewDistribution returns an empty distribution whose percentiles have a relative error of at most 0.5 %.
func NewDistribution() *Distribution { return newDistribution(0.005) }

func newDistribution(relative float64) *Distribution {
	gamma := (1 + relative) / (1 - relative)
	return &Distribution{gamma: gamma, growth: math.Log(gamma), counts: map[int]uint64{}, smallest: math.Inf(1)}
}

// Add counts a value. It panics if the value is negative, infinite or NaN, which times and ratios never are.
func (d *Distribution) Add(value float64) {
	if !(value >= 0 && value <= math.MaxFloat64) {
		panic(fmt.Sprintf("BUG: stats: %v is not a finite value of at least 0", value))
	}
	d.count++
	d.sum += value
	d.smallest, d.largest = min(d.smallest, value), max(d.largest, value)
	bucket := zeros
	if value >= zero {
		bucket = int(math.Ceil(math.Log(value) / d.growth))
	}
	d.counts[bucket]++
}

// merge counts all values of another distribution of the same relative error.
func (d *Distribution) merge(other *Distribution) {
	d.count += other.count
	d.sum += other.sum
	d.smallest, d.largest = min(d.smallest, other.smallest), max(d.largest, other.largest)
	for k, n := range other.counts {
		d.counts[k] += n
	}
}

// quantile returns the value of rank ceil(q x count), counted from the smallest; q is between 0 and 1.
// The result is within the smallest and the largest value, and 0 without values.
func (d *Distribution) quantile(q float64) float64 {
	rank, seen := max(1, uint64(math.Ceil(q*float64(d.count)))), uint64(0)
	for _, k := range slices.Sorted(maps.Keys(d.counts)) {
		if seen += d.counts[k]; rank <= seen {
			// The point with the same relative distance from both bounds of the bucket.
			value := 2 * math.Exp(float64(k)*d.growth) / (1 + d.gamma)
			return min(max(value, d.smallest), d.largest)
		}
	}
	return d.largest
}

// Summary returns the columns of the thesis's tables.
func (d *Distribution) Summary() Summary {
	return Summary{
		Count:  d.count,
		Mean:   d.sum / float64(max(1, d.count)),
		Median: d.quantile(0.5),
		P90:    d.quantile(0.9),
		P95:    d.quantile(0.95),
		P99:    d.quantile(0.99),
		Max:    d.largest,
	}
}

// Summary is one row of the thesis's tables 4, 5 and 7: one quantity of one run and priority. All fields are 0 without values.
type Summary struct {
	// Count is 0 in rows of published tables, which have no counts.
	Count  uint64  `json:"count,omitzero"`
	Mean   float64 `json:"mean"`
	Median float64 `json:"median"`
	P90    float64 `json:"p90"`
	P95    float64 `json:"p95"`
	P99    float64 `json:"p99"`
	Max    float64 `json:"max"`
}

// Columns returns the column titles of the thesis's tables.
func Columns() []string { return []string{"mean", "median", "p90", "p95", "p99", "max"} }

// Numbers returns the values in the order of Columns.
func (s Summary) Numbers() []float64 { return []float64{s.Mean, s.Median, s.P90, s.P95, s.P99, s.Max} }
