package figure

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Lines draws values from 0 to 1, one line above the other, each with its name. A
// value lasts for step seconds.
func Lines(label string, step float64, names []string, values [][]float64) SVG {
	p := newPlot()
	longest := 1
	for _, v := range values {
		longest = max(longest, len(v))
	}
	clock(&p.X, float64(longest)*step)
	p.Y.Min, p.Y.Max = -float64(len(values))+0.9, 1.05
	var ticks plot.ConstantTicks
	for i, name := range names {
		ticks = append(ticks, plot.Tick{Value: 0.45 - float64(i), Label: name})
	}
	p.Y.Tick.Marker = ticks
	p.Y.Tick.LineStyle.Width = 0
	p.Add(painter(func(c draw.Canvas, x, y func(float64) vg.Length) {
		for i, row := range values {
			floor := -float64(i)
			stroke(c, faint, 0.6, vg.Point{X: c.Min.X, Y: y(floor)}, vg.Point{X: c.Max.X, Y: y(floor)})
			stroke(c, faint, 0.6, vg.Point{X: c.Min.X, Y: y(floor + 0.9)}, vg.Point{X: c.Max.X, Y: y(floor + 0.9)})
			var points []vg.Point
			for n, v := range row {
				at := y(floor + 0.9*min(max(v, 0), 1))
				points = append(points, vg.Point{X: x(float64(n) * step), Y: at}, vg.Point{X: x(float64(n+1) * step), Y: at})
			}
			stroke(c, series(i), 1.2, points...)
		}
	}))
	return render(p, 900, vg.Length(34+38*len(values)), label)
}

// Area draws how a value changes over equal stretches of time up to end, in
// seconds, in the Color of a number. The scale goes to top by the square root, so
// that small values can be seen beside large ones.
func Area(label string, stretch, end float64, values []float64, top float64, number int) SVG {
	p := newPlot()
	clock(&p.X, end)
	if !(top > 1e-6) {
		top = 1 // there is nothing to show
	}
	p.Y.Min, p.Y.Max = 0, top
	p.Y.Scale = rootScale{}
	ticks := roots(top)
	p.Y.Tick.Marker = ticks
	p.Add(painter(func(c draw.Canvas, x, y func(float64) vg.Length) {
		lines(c, ticks, y)
		outline := []vg.Point{{X: x(0), Y: y(0)}}
		for i, v := range values {
			at := y(min(max(v, 0), top))
			outline = append(outline, vg.Point{X: x(float64(i) * stretch), Y: at}, vg.Point{X: x(min(float64(i+1)*stretch, end)), Y: at})
		}
		outline = append(outline, vg.Point{X: x(min(float64(len(values))*stretch, end)), Y: y(0)})
		c.FillPolygon(series(number), outline)
	}))
	return render(p, 900, 110, label)
}

// rootScale spaces values by their square roots.
type rootScale struct{}

// Normalize implements plot.Normalizer.
func (rootScale) Normalize(low, high, v float64) float64 {
	return math.Sqrt(max(0, v-low) / (high - low))
}
