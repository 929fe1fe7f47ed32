package figure

import (
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Area draws how a value changes over equal stretches of time up to end, in
// seconds, in the Color of a number, on a scale that goes to top: a square
// root's, which shows the small beside the large.
func Area(label string, stretch, end float64, values []float64, top float64, number int) SVG {
	p := newPlot()
	clock(&p.X, end)
	if !(top > 1e-6) {
		top = 1 // nothing to see
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
