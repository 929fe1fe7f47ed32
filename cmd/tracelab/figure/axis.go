package figure

import (
	"fmt"
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// decades puts a logarithmic scale on an axis that holds all positive values,
// from a power of ten to another.
func decades(axis *plot.Axis, label func(float64) string, values ...[]float64) {
	low, high := math.Inf(1), math.Inf(-1)
	for _, vs := range values {
		for _, v := range vs {
			if v > 0 {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	if high < low {
		low, high = 1, 10
	}
	first, last := math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
	if first == last {
		last++
	}
	axis.Scale = plot.LogScale{}
	axis.Min, axis.Max = math.Pow(10, first), math.Pow(10, last)
	var ticks plot.ConstantTicks
	for decade := first; decade <= last; decade++ {
		value := math.Pow(10, decade)
		ticks = append(ticks, plot.Tick{Value: value, Label: label(value)})
	}
	axis.Tick.Marker = ticks
}

// seconds writes a power of ten of a second.
func seconds(v float64) string {
	switch {
	case v < 0.9e-3:
		return strconv.FormatFloat(v*1e6, 'f', -1, 64) + " µs"
	case v < 0.9:
		return strconv.FormatFloat(v*1e3, 'f', -1, 64) + " ms"
	}
	return strconv.FormatFloat(v, 'f', -1, 64) + " s"
}

func plain(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// clock puts a time axis from 0 to end, in seconds, into days, hours or
// minutes with round ticks.
func clock(axis *plot.Axis, end float64) {
	unit, name := 1.0, "s"
	switch {
	case end > 3*86400:
		unit, name = 86400, "d"
	case end > 2*3600:
		unit, name = 3600, "h"
	case end > 120:
		unit, name = 60, "min"
	}
	step := round(end / unit / 8)
	var ticks plot.ConstantTicks
	for n := 0; float64(n)*step*unit <= end*1.0001; n++ {
		ticks = append(ticks, plot.Tick{Value: float64(n) * step * unit, Label: fmt.Sprintf("%v %s", float64(n)*step, name)})
	}
	axis.Min, axis.Max = 0, end
	axis.Tick.Marker = ticks
}

// round is the next number of 1, 2, 3, 5 or 6 times a power of ten.
func round(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, n := range []float64{1, 2, 3, 5, 6} {
		if v <= n*power*1.0001 {
			return n * power
		}
	}
	return 10 * power
}
