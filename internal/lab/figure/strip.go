package figure

import (
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// shades is how many colours a strip has.
const shades = 12

// Strip draws a row for each upstream over time: calm where the share is 0, red
// where it is 1, grey where the upstream is away. Rows hold shares from 0 to 1 over
// equal stretches of time up to end, in seconds. gone has as many rows, or none.
func Strip(label string, stretch, end float64, rows, gone [][]float64) SVG {
	p := newPlot()
	clock(&p.X, end)
	p.Y.Min, p.Y.Max = 0.5-float64(len(rows)), 0.5
	p.Y.Tick.Marker = upstreams(len(rows))
	p.Y.Tick.LineStyle.Width = 0
	p.Add(painter(func(c draw.Canvas, x, y func(float64) vg.Length) {
		fill(c, calm, c.Min.X, c.Min.Y, c.Max.X, c.Max.Y)
		for i, row := range rows {
			cells := make([]color.RGBA, len(row))
			for n, share := range row {
				cells[n] = heat(math.Round(share*shades) / shades)
				if i < len(gone) && n < len(gone[i]) && gone[i][n] >= 0.5 {
					cells[n] = away
				}
			}
			top, bottom := y(0.5-float64(i)), y(-0.5-float64(i))
			gap := (top - bottom) * 0.08
			stripes(cells, func(with color.RGBA, from, to int) {
				fill(c, with, x(float64(from)*stretch), bottom+gap, x(min(float64(to)*stretch, end)), top-gap)
			})
		}
	}))
	height := 30 + float64(len(rows))*min(11, max(1.5, 160/float64(len(rows))))
	return render(p, 900, vg.Length(height), label)
}

// stripes calls paint for each stretch of one colour that is not calm.
func stripes(cells []color.RGBA, paint func(with color.RGBA, from, to int)) {
	for from := 0; from < len(cells); {
		to := from + 1
		for to < len(cells) && cells[to] == cells[from] {
			to++
		}
		if cells[from] != calm {
			paint(cells[from], from, to)
		}
		from = to
	}
}

// upstreams labels the rows with numbers, as many as there is room for.
func upstreams(rows int) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	step := roundStep(rows, 15)
	for i := 0; i < rows; i += step {
		ticks = append(ticks, plot.Tick{Value: -float64(i), Label: strconv.Itoa(i)})
	}
	return ticks
}
