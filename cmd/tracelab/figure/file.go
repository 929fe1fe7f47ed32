package figure

import (
	"fmt"
	"html"
	"strings"
	"unicode/utf8"
)

// File is the figure as a file of its own, with the names of its series below
// it, each beside its Color.
func (s SVG) File(names []string) string {
	const (
		line   = 16 // a name's height
		key    = 10 // the side of its colour's square
		letter = 6  // a letter's mean width
		margin = 8
	)
	var width, height int
	if _, err := fmt.Sscanf(string(s), `<svg viewBox="0 0 %d %d"`, &width, &height); err != nil {
		panic("BUG: figure: not an svg element: " + err.Error())
	}
	var legend strings.Builder
	x, y := margin, height+line
	for i, name := range names {
		wide := 3*key + letter*utf8.RuneCountInString(name)
		if x > margin && x+wide > width {
			x, y = margin, y+line
		}
		fmt.Fprintf(&legend, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n",
			x, y-key, key, key, Color(i), x+key+4, y-1, html.EscapeString(name))
		x += wide
	}
	total := height
	if len(names) > 0 {
		total = y + margin
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="Liberation Sans, Arial, Helvetica, sans-serif" font-size="11">`+"\n"+
		`<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, total, width, total) +
		strings.Replace(string(s), "<svg ", fmt.Sprintf(`<svg width="%d" height="%d" `, width, height), 1) +
		legend.String() + "</svg>\n"
}
