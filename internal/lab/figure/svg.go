package figure

import (
	"fmt"
	"html"
	"regexp"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// SVG is a figure as an svg element.
type SVG string

// render draws a plot. label says what it shows to those who cannot see it.
func render(p *plot.Plot, width, height vg.Length, label string) SVG {
	c := vgsvg.New(width, height)
	p.Draw(draw.New(c))
	var out strings.Builder
	if _, err := c.WriteTo(&out); err != nil {
		panic("BUG: figure: a string builder failed: " + err.Error())
	}
	text := out.String()
	// The page declares what a file of its own would have to.
	_, body, _ := strings.Cut(text, ">\n<svg")
	_, body, _ = strings.Cut(body, ">")
	_, body, _ = strings.Cut("<svg"+body, "\n")
	return SVG(fmt.Sprintf(`<svg viewBox="0 0 %.0f %.0f" role="img" aria-label="%s">`+"\n", width.Points(), height.Points(), html.EscapeString(label)) +
		fontStyle().ReplaceAllString(body, "font-size:"))
}

// fontStyle is how the library names a font: the page's own does.
func fontStyle() *regexp.Regexp {
	return regexp.MustCompile(`font-family:[^"]*font-size:`)
}

// newPlot is an empty plot in the report's look.
func newPlot() *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Font = sans(9)
		axis.Tick.Label.Font = sans(9)
		axis.Padding = 0
		axis.LineStyle.Width = vg.Points(0.6)
		axis.Tick.LineStyle.Width = vg.Points(0.6)
		axis.LineStyle.Color = ink
		axis.Tick.LineStyle.Color = ink
		axis.Label.TextStyle.Color = ink
		axis.Tick.Label.Color = ink
	}
	return p
}

func sans(size vg.Length) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
}
