package figure

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Dot is one line of dots: a value for each upstream, and the value over all of
// them. Mark is a published value over all; 0 is none.
type Dot struct {
	Name   string
	Values []float64
	All    float64
	Mark   float64
}

// Dots draws a line for each run on a logarithmic scale of unit, the first run on
// top. Circles are upstreams, a diamond is all of them together, a bar is the
// published value. Dots that are too small for the scale stand at its left edge.
func Dots(label, unit string, runs []Dot) SVG {
	p := newPlot()
	var all [][]float64
	var names plot.ConstantTicks
	for i, r := range runs {
		all = append(all, r.Values, []float64{r.All, r.Mark})
		names = append(names, plot.Tick{Value: -float64(i), Label: r.Name})
	}
	decades(&p.X, plain, all...)
	p.X.Label.Text = unit
	p.Y.Min, p.Y.Max = 0.5-float64(len(runs)), 0.5
	p.Y.Tick.Marker = names
	p.Y.Tick.LineStyle.Width = 0
	p.Y.Padding = 6 // for dots at the edge
	p.Add(painter(func(c draw.Canvas, x, y func(float64) vg.Length) {
		for _, t := range p.X.Tick.Marker.Ticks(p.X.Min, p.X.Max) {
			stroke(c, faint, 0.6, vg.Point{X: x(t.Value), Y: c.Min.Y}, vg.Point{X: x(t.Value), Y: c.Max.Y})
		}
		at := func(v float64) vg.Length { return x(max(v, p.X.Min)) }
		for i, r := range runs {
			r.paint(c, at, y(-float64(i)), i)
		}
	}))
	return render(p, 900, vg.Length(46+24*len(runs)), label)
}

func (d *Dot) paint(c draw.Canvas, x func(float64) vg.Length, y vg.Length, number int) {
	stroke(c, faint, 0.6, vg.Point{X: c.Min.X, Y: y}, vg.Point{X: c.Max.X, Y: y})
	hollow := draw.GlyphStyle{Color: series(number), Radius: 3.2, Shape: draw.RingGlyph{}}
	for _, v := range d.Values {
		c.DrawGlyph(hollow, vg.Point{X: x(v), Y: y})
	}
	if d.Mark > 0 {
		at := x(d.Mark)
		stroke(c, ink, 1.6, vg.Point{X: at, Y: y - 8}, vg.Point{X: at, Y: y + 8})
	}
	const radius = 5
	at := x(d.All)
	c.FillPolygon(series(number), []vg.Point{{X: at - radius, Y: y}, {X: at, Y: y + radius}, {X: at + radius, Y: y}, {X: at, Y: y - radius}})
}
