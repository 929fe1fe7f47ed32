package figure

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Area draws how a value changes over equal stretches of time, in seconds, in
// the Color of a number, on a scale that goes to top: a square root's, which
// shows the small beside the large.
func Area(label string, stretch float64, values []float64, top float64, number int) SVG {
	p := newPlot()
	clock(&p.X, math.Max(1, float64(len(values)))*stretch)
	if top <= 0 {
		top = 1
	}
	p.Y.Min, p.Y.Max = 0, top
	p.Y.Scale = rootScale{}
	var ticks plot.ConstantTicks
	for _, part := range []float64{0, 1.0 / 9, 4.0 / 9, 1} {
		v := part * top
		ticks = append(ticks, plot.Tick{Value: v, Label: plain(math.Round(v*100) / 100)})
	}
	p.Y.Tick.Marker = ticks
	p.Add(painter(func(c draw.Canvas, x, y func(float64) vg.Length) {
		lines(c, ticks, y)
		outline := []vg.Point{{X: x(0), Y: y(0)}}
		for i, v := range values {
			at := y(min(max(v, 0), top))
			outline = append(outline, vg.Point{X: x(float64(i) * stretch), Y: at}, vg.Point{X: x(float64(i+1) * stretch), Y: at})
		}
		outline = append(outline, vg.Point{X: x(float64(len(values)) * stretch), Y: y(0)})
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
