package figure

import (
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// mostDecades bounds a logarithmic scale: how small the values below are does not
// matter.
const mostDecades = 9

// decades puts a logarithmic scale on an axis, from one power of ten to another. It
// holds the positive values; the caller handles those that are too small for it.
func decades(axis *plot.Axis, label func(float64) string, values ...[]float64) {
	low, high := math.Inf(1), math.Inf(-1)
	for _, vs := range values {
		for _, v := range vs {
			if v > 0 && v < 1e300 {
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
	first = max(first, last-mostDecades)
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

// clock puts a time axis from 0 to end, in seconds, with round ticks.
func clock(axis *plot.Axis, end float64) {
	axis.Min, axis.Max = 0, end
	step, unit, name := timeStep(end)
	ticks := plot.ConstantTicks{{Value: 0, Label: "0"}}
	for i := range min(int(end/(step*unit)), 100) {
		at := float64(i+1) * step
		ticks = append(ticks, plot.Tick{Value: at * unit, Label: plain(at) + " " + name})
	}
	axis.Tick.Marker = ticks
}

// timeStep is the smallest round time that goes into the whole at most ten times, or else
// 10,000 days: as a number of units, with the unit in seconds and by its name.
func timeStep(whole float64) (step, unit float64, name string) {
	for _, u := range []struct {
		name    string
		seconds float64
		steps   []float64
	}{
		{"s", 1, []float64{1, 2, 5, 10, 15, 30}},
		{"min", 60, []float64{1, 2, 5, 10, 15, 30}},
		{"h", 3600, []float64{1, 2, 3, 6, 12}},
		{"d", 86400, []float64{1, 2, 5, 10, 20, 50, 100, 1000}},
	} {
		for _, step := range u.steps {
			if int(whole/(step*u.seconds)) <= 10 {
				return step, u.seconds, u.name
			}
		}
	}
	return 10_000, 86400, "d"
}

// roots are the round numbers up to top that stand apart on a square-root scale.
func roots(top float64) plot.ConstantTicks {
	ticks := plot.ConstantTicks{{Value: 0, Label: "0"}}
	last := 0.0
	for power := math.Pow(10, math.Floor(math.Log10(top))-3); power <= top; power *= 10 {
		for _, n := range []float64{1, 2, 5} {
			v := n * power
			if root := math.Sqrt(v / top); v <= top && root-last >= 0.2 {
				ticks = append(ticks, plot.Tick{Value: v, Label: plain(v)})
				last = root
			}
		}
	}
	return ticks
}

// roundStep is the smallest round number of things from one label to the next that makes no
// more labels than fit.
func roundStep(things, labels int) int {
	step := 1
	for _, larger := range []int{2, 5, 10, 20, 50, 100, 200, 500, 1000} {
		if things/step > labels {
			step = larger
		}
	}
	return step
}

// painter is a plotter that is one function.
type painter func(c draw.Canvas, x, y func(float64) vg.Length)

// Plot implements plot.Plotter.
func (f painter) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	f(c, x, y)
}

// fill paints a rectangle.
func fill(c draw.Canvas, with color.Color, left, bottom, right, top vg.Length) {
	c.FillPolygon(with, []vg.Point{{X: left, Y: bottom}, {X: right, Y: bottom}, {X: right, Y: top}, {X: left, Y: top}})
}

// stroke paints a line.
func stroke(c draw.Canvas, with color.Color, width vg.Length, points ...vg.Point) {
	c.StrokeLines(draw.LineStyle{Color: with, Width: width}, points)
}
