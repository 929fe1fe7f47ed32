package figure

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

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
