package stats

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Grid is a table of text cells: the first columns are left-aligned, the others right-aligned.
type Grid struct {
	Title string // a line above the table; none if empty
	Left  int    // number of left-aligned columns
	Heads [][]string
	Rows  [][]string
}

// WriteText writes the table and an empty line.
func (g *Grid) WriteText(w io.Writer) error {
	lines := append(append([][]string{}, g.Heads...), g.Rows...)
	var widths []int
	for _, line := range lines {
		for i, cell := range line {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var out strings.Builder
	if g.Title != "" {
		out.WriteString(g.Title + "\n")
	}
	for _, line := range lines {
		var text strings.Builder
		for i, cell := range line {
			if i > 0 {
				text.WriteString("  ")
			}
			width := widths[i]
			if i < g.Left {
				width = -width
			}
			fmt.Fprintf(&text, "%*s", width, cell)
		}
		out.WriteString(strings.TrimRight(text.String(), " ") + "\n")
	}
	_, err := io.WriteString(w, out.String()+"\n")
	return err
}

// Thousands formats a number with a comma between groups of three digits.
func Thousands(n int) string {
	digits := strconv.Itoa(n)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// Span formats a duration in seconds as 1h2m3s, rounded to whole seconds, without trailing units of zero.
func Span(seconds float64) string {
	text := time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
	if whole, ok := strings.CutSuffix(text, "m0s"); ok {
		text = whole + "m"
	}
	if whole, ok := strings.CutSuffix(text, "h0m"); ok {
		text = whole + "h"
	}
	return text
}
