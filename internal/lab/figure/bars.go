package figure

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Bar is one series of grouped bars, in seconds: a value for each group.
// Marks, if any, are published values to show as lines across the bars; 0 is none.
type Bar struct{ Values, Marks []float64 }

// Bars draws grouped bars on a logarithmic scale of seconds, each series in its
// Color. That scale has no place for 0, so a value of 0 is a stub.
func Bars(label string, groups []string, series []Bar) SVG {
	p := newPlot()
	var all [][]float64
	for _, s := range series {
		all = append(all, s.Values, s.Marks)
	}
	decades(&p.Y, seconds, all...)
	return bars(p, label, groups, series)
}

// Shares draws grouped bars on a scale from 0 to 1, as Bars does of seconds.
func Shares(label string, groups []string, series []Bar) SVG {
	p := newPlot()
	p.Y.Min, p.Y.Max = 0, 1
	return bars(p, label, groups, series)
}

// bars draws grouped bars on a plot whose vertical axis has its scale.
func bars(p *plot.Plot, label string, groups []string, series []Bar) SVG {
	p.X.Min, p.X.Max = -0.5, float64(len(groups))-0.5
	var names plot.ConstantTicks
	for i, g := range groups {
		names = append(names, plot.Tick{Value: float64(i), Label: g})
	}
	p.X.Tick.Marker = names
	p.X.Tick.LineStyle.Width = 0
	p.Add(painter(func(c draw.Canvas, x, y func(float64) vg.Length) {
		lines(c, p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max), y)
		for n, s := range series {
			s.paint(c, x, y, n, len(series), p.Y.Min)
		}
	}))
	return render(p, 900, 230, label)
}

// lines draws a faint line across for each tick.
func lines(c draw.Canvas, ticks []plot.Tick, y func(float64) vg.Length) {
	for _, t := range ticks {
		stroke(c, faint, 0.6, vg.Point{X: c.Min.X, Y: y(t.Value)}, vg.Point{X: c.Max.X, Y: y(t.Value)})
	}
}

// paint draws the bars of series number of count.
func (b *Bar) paint(c draw.Canvas, x, y func(float64) vg.Length, number, count int, floor float64) {
	const share = 0.84 // the bars' share of a group's width
	width := share / float64(count)
	for g, v := range b.Values {
		left := float64(g) - share/2 + width*float64(number)
		l, r := x(left+0.08*width), x(left+0.92*width)
		top := y(floor) + 1.5
		if v > floor {
			top = max(top, y(v))
		}
		fill(c, series(number), l, y(floor), r, top)
		if g < len(b.Marks) && b.Marks[g] > 0 {
			at := y(max(b.Marks[g], floor))
			stroke(c, ink, 1.4, vg.Point{X: x(left + 0.02*width), Y: at}, vg.Point{X: x(left + 0.98*width), Y: at})
		}
	}
}
