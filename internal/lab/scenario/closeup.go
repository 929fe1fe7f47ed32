package scenario

import (
	"cmp"
	"math"
	"slices"

	"example.org/pilotfish/internal/lab/results"
)

const (
	closeupUpstreams = 4   // how many upstreams the closeup shows
	closeupSamples   = 300 // for how many samples
	closeupOf        = 32  // how many upstreams are watched for it: that bounds memory
)

// closeup finds the time in which the levels moved most. Each row of levels is
// one upstream's, sampled every step seconds. It is nil if no level ever moved.
func closeup(step float64, levels [][]float32) *results.Closeup {
	if len(levels) == 0 || len(levels[0]) == 0 {
		return nil
	}
	moved := func(row []float32, n int) float64 { return math.Abs(float64(row[n] - row[n-1])) }
	length := len(levels[0])
	best, from, sum := 0.0, 0, 0.0
	for n := 1; n < length; n++ {
		for _, row := range levels {
			sum += moved(row, n)
			if n > closeupSamples {
				sum -= moved(row, n-closeupSamples)
			}
		}
		if sum > best+1e-9 { // less is a rounding error
			best, from = sum, max(0, n-closeupSamples)
		}
	}
	if best == 0 {
		return nil
	}
	to := min(length, from+closeupSamples)
	movement := make([]float64, len(levels))
	order := make([]int, len(levels))
	for i, row := range levels {
		order[i] = i
		for n := from + 1; n < to; n++ {
			movement[i] += moved(row, n)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(movement[b], movement[a]) })
	c := &results.Closeup{From: float64(from+1) * step, Step: step}
	c.Upstreams = slices.Sorted(slices.Values(order[:min(closeupUpstreams, len(order))]))
	for _, i := range c.Upstreams {
		var row []float64
		for _, l := range levels[i][from:to] {
			row = append(row, math.Round(float64(l)*1e4)/1e4)
		}
		c.Level = append(c.Level, row)
	}
	return c
}
