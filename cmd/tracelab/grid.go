package main

import (
	"strings"
	"unicode/utf8"
)

// grid is a table of cells: the first columns aligned to the left, the others
// to the right.
type grid struct {
	title string
	left  int
	heads [][]string
	rows  [][]string
}

// write appends the table as text, and an empty line.
func (g *grid) write(out *strings.Builder) {
	var widths []int
	lines := append(append([][]string{}, g.heads...), g.rows...)
	for _, line := range lines {
		for i, cell := range line {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	if g.title != "" {
		out.WriteString(g.title + "\n")
	}
	for _, line := range lines {
		var text strings.Builder
		for i, cell := range line {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				text.WriteString("  ")
			}
			if i < g.left {
				text.WriteString(cell + pad)
			} else {
				text.WriteString(pad + cell)
			}
		}
		out.WriteString(strings.TrimRight(text.String(), " ") + "\n")
	}
	out.WriteString("\n")
}
