package figure

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Lines draws values from 0 to 1 that change in steps of a length, in seconds,
// one above the other, each with its name.
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
