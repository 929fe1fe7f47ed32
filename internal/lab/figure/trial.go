package figure

import (
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Shade is what a stretch of a figure's horizontal axis is shaded with.
type Shade uint8

// The shades: none, and those of the modes.
const (
	Bare Shade = iota
	Flat
	Growing
	Losing
)

var shadeColors = [...]color.RGBA{{0xff, 0xff, 0xff, 0xff}, {0xec, 0xf7, 0xee, 0xff}, {0xff, 0xf0, 0xc9, 0xff}, {0xfa, 0xd9, 0xd5, 0xff}}

// Band shades the axis from one value to another.
type Band struct {
	From, To float64
	Shade    Shade
}

// BandKeys say what the shades stand for.
func BandKeys() []Key {
	return []Key{{"flat", css(shadeColors[Flat])}, {"growing", css(shadeColors[Growing])}, {"losing", css(shadeColors[Losing])}}
}

// margin leaves room for the last label of an axis.
const margin = 1.02

func paintBands(c draw.Canvas, x func(float64) vg.Length, bands []Band, end float64) {
	for _, b := range bands {
		if b.Shade != Bare {
			fill(c, shadeColors[b.Shade], x(max(0, b.From)), c.Min.Y, x(min(b.To, end)), c.Max.Y)
		}
	}
}

// Span is one job on a timeline: a line from its arrival to the first byte of its
// response, in seconds. Partial jobs are drawn in orange. Absent ones are a cross at
// their arrival.
type Span struct {
	From, To        float64
	Partial, Absent bool
}

// Timeline draws a line for each job, one above the other, over time up to end, in seconds.
func Timeline(label string, spans []Span, bands []Band, end float64) SVG {
	p := newPlot()
	clock(&p.X, end)
	p.X.Max = margin * end
	p.Y.Min, p.Y.Max = -1, float64(max(1, len(spans)))
	p.Y.Tick.Marker = jobs(len(spans))
	p.Y.Label.Text = "job"
	width := vg.Length(min(2.2, max(0.4, 500/float64(len(spans)+1))))
	p.Add(painter(func(c draw.Canvas, x, y func(float64) vg.Length) {
		paintBands(c, x, bands, end)
		for i, s := range spans {
			at := y(float64(i))
			if s.Absent {
				cross(c, x(s.From), at)
				continue
			}
			color := series(0)
			if s.Partial {
				color = series(5)
			}
			stroke(c, color, width, vg.Point{X: x(s.From), Y: at}, vg.Point{X: x(max(s.To, s.From+end/900)), Y: at})
		}
	}))
	return render(p, 900, vg.Length(60+min(640, 6*float64(len(spans)))), label)
}

func cross(c draw.Canvas, x, y vg.Length) {
	const size = 2.4
	red := color.RGBA{0xb0, 0x1e, 0x28, 0xff}
	stroke(c, red, 1, vg.Point{X: x - size, Y: y - size}, vg.Point{X: x + size, Y: y + size})
	stroke(c, red, 1, vg.Point{X: x - size, Y: y + size}, vg.Point{X: x + size, Y: y - size})
}

// Curves draws series of seconds, job by job, each in its Color. NaN is a gap.
func Curves(label string, values [][]float64, bands []Band) SVG {
	p := newPlot()
	count, top := 2, 0.0
	for _, row := range values {
		count = max(count, len(row))
		for _, v := range row {
			if v > top { // not NaN
				top = v
			}
		}
	}
	if top <= 0 {
		top = 1
	}
	end := float64(count - 1)
	p.X.Min, p.X.Max = 0, margin*end
	p.X.Tick.Marker = jobs(count)
	p.X.Label.Text = "job"
	p.Y.Min, p.Y.Max = 0, top
	p.Y.Label.Text = "s"
	p.Add(painter(func(c draw.Canvas, x, y func(float64) vg.Length) {
		paintBands(c, x, bands, end)
		lines(c, p.Y.Tick.Marker.Ticks(0, top), y)
		for n, row := range values {
			var points []vg.Point
			for i, v := range row {
				if math.IsNaN(v) {
					curve(c, series(n), points)
					points = nil
					continue
				}
				points = append(points, vg.Point{X: x(float64(i)), Y: y(v)})
			}
			curve(c, series(n), points)
		}
	}))
	return render(p, 900, 300, label)
}

// curve draws a line, or a dot where there is one point.
func curve(c draw.Canvas, with color.RGBA, points []vg.Point) {
	if len(points) == 1 {
		c.DrawGlyph(draw.GlyphStyle{Color: with, Radius: 1.3, Shape: draw.CircleGlyph{}}, points[0])
		return
	}
	stroke(c, with, 1.1, points...)
}

// jobs labels an axis that counts jobs from 1.
func jobs(count int) plot.ConstantTicks {
	ticks := plot.ConstantTicks{{Value: 0, Label: "1"}}
	step := roundStep(count, 12)
	for i := step; i <= count; i += step {
		if i > 1 {
			ticks = append(ticks, plot.Tick{Value: float64(i - 1), Label: plain(float64(i))})
		}
	}
	return ticks
}
