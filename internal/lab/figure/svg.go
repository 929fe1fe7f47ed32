// Package figure draws the figures of tracelab's report as SVG. A figure stands
// inside an HTML page or in a file of its own, and needs nothing from elsewhere.
// Equal data give equal bytes.
package figure

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"unicode/utf8"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// SVG is a figure as an svg element.
type SVG string

// render draws a plot. label describes it to people who cannot see it.
func render(p *plot.Plot, width, height vg.Length, label string) SVG {
	c := vgsvg.New(width, height)
	p.Draw(draw.New(c))
	var out strings.Builder
	if _, err := c.WriteTo(&out); err != nil {
		panic("BUG: figure: a string builder failed: " + err.Error())
	}
	text := out.String()
	// The head of a file of its own is left out: the page has one.
	_, body, _ := strings.Cut(text, ">\n<svg")
	_, body, _ = strings.Cut(body, ">")
	_, body, _ = strings.Cut("<svg"+body, "\n")
	return SVG(fmt.Sprintf(`<svg viewBox="0 0 %.0f %.0f" role="img" aria-label="%s">`+"\n", width.Points(), height.Points(), html.EscapeString(label)) +
		fontStyle().ReplaceAllString(body, "font-size:"))
}

// fontStyle matches the fonts that the library names. They are removed: the page
// names its own.
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

// Key says what a colour stands for.
type Key struct{ Name, Color string }

// File is the figure as a file of its own, with what its colours stand for
// below it.
func (s SVG) File(keys []Key) string {
	const (
		line   = 16 // a name's height
		side   = 10 // of its colour's square
		letter = 6  // a letter's mean width
		margin = 8
	)
	var width, height int
	if _, err := fmt.Sscanf(string(s), `<svg viewBox="0 0 %d %d"`, &width, &height); err != nil {
		panic("BUG: figure: not an svg element: " + err.Error())
	}
	var legend strings.Builder
	x, y := margin, height+line
	for _, key := range keys {
		wide := 3*side + letter*utf8.RuneCountInString(key.Name)
		if x > margin && x+wide > width {
			x, y = margin, y+line
		}
		fmt.Fprintf(&legend, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n",
			x, y-side, side, side, key.Color, x+side+4, y-1, html.EscapeString(key.Name))
		x += wide
	}
	total := height
	if len(keys) > 0 {
		total = y + margin
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="Liberation Sans, Arial, Helvetica, sans-serif" font-size="11">`+"\n"+
		`<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, total, width, total) +
		strings.Replace(string(s), "<svg ", fmt.Sprintf(`<svg width="%d" height="%d" `, width, height), 1) +
		legend.String() + "</svg>\n"
}
