package main

import (
	"cmp"
	"math"
	"slices"
)

// What a closeup shows: some upstreams, for some time.
const (
	closeupUpstreams = 4
	closeupSamples   = 300
	// closeupOf bounds the upstreams that are watched for it.
	closeupOf = 32
)

// closeup is the time in which the overload levels moved most, in full
// detail: the thesis's figure 15.
type closeup struct {
	// From is when it begins, Step the time between two levels, in seconds.
	From float64 `json:"from_s"`
	Step float64 `json:"step_s"`
	// Upstreams are those whose levels moved most, with a row of levels each.
	Upstreams []int       `json:"upstreams"`
	Level     [][]float64 `json:"level"`
}

// findCloseup looks for it in the levels of upstreams sampled every step
// seconds; nil when none ever moves.
func findCloseup(step float64, levels [][]float32) *closeup {
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
		if sum > best+1e-9 { // what is left of rounding is no movement
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
	c := &closeup{From: float64(from+1) * step, Step: step}
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
