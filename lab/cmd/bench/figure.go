//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
)

// svg draws the first column of each table: a bar is the median of the rounds, the line on
// it reaches from the least to the largest.
func (r *results) svg() []byte {
	const left, wide, high, head = 190, 560, 18, 30
	var out strings.Builder
	y := 10
	for _, t := range r.tables {
		of := func(row *row) []float64 { return slices.Sorted(slices.Values(row.values[t.columns[0]])) }
		most := 1e-9
		for _, row := range t.rows {
			most = max(most, slices.Max(of(row)))
		}
		x := func(v float64) float64 { return left + v/most*(wide-60) }
		fmt.Fprintf(&out, `<text x="0" y="%d" font-weight="bold">%s: %s, seconds</text>`+"\n", y+12, t.name, t.columns[0])
		y += head
		for _, row := range t.rows {
			values, color := of(row), "#9aa5b1"
			n := len(values)
			if strings.HasPrefix(row.name, "pilotfish") {
				color = "#3b7dd8"
			}
			fmt.Fprintf(&out, `<text x="%d" y="%d" text-anchor="end">%s</text><rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`+
				`<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#000"/>`+"\n",
				left-8, y+11, row.name, left, y, x((values[(n-1)/2]+values[n/2])/2)-left, high-5, color, x(values[0]), x(values[n-1]), y+6, y+6)
			y += high
		}
		y += 14
	}
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n%s</svg>\n", left+wide, y, &out)
}
