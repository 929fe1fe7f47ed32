package figure

import (
	"fmt"
	"html"
	"strings"
	"unicode/utf8"
)

// Key tells what a colour stands for.
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
