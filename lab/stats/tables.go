package stats

import (
	"io"
	"math"
	"slices"
	"strconv"
)

// Row is one row of the thesis's tables 4, 5 and 7.
type Row struct {
	Run      string   `json:"run"`
	Priority string   `json:"priority"`
	Quantity Quantity `json:"quantity"`
	Summary
}

// VarianceRow is one row of the thesis's table 6, in square seconds.
type VarianceRow struct {
	Run string `json:"run"`
	// All is over all upstreams, Upstreams has the variance of each.
	All       float64   `json:"all"`
	Upstreams []float64 `json:"upstreams"`
}

// Tables are the results of several runs, in the thesis's layout.
type Tables struct {
	Rows      []Row         `json:"rows"`
	Variances []VarianceRow `json:"wait_variance"`
}

// WriteText writes one aligned table per quantity, a line per run, and the
// variance of the waits per upstream.
func (t *Tables) WriteText(w io.Writer) error {
	for _, q := range Quantities() {
		if g := t.quantity(q); len(g.Rows) > 0 {
			if err := g.WriteText(w); err != nil {
				return err
			}
		}
	}
	if len(t.Variances) == 0 {
		return nil
	}
	return t.variances().WriteText(w)
}

// quantity is one quantity's table: two lines of headings, then a line per run.
func (t *Tables) quantity(q Quantity) *Grid {
	priorities := []string{"high", "low"}
	g := &Grid{Left: 1, Heads: [][]string{{string(q)}, {"run"}}}
	for _, p := range priorities {
		g.Heads[0] = append(g.Heads[0], p, "", "", "", "", "")
		g.Heads[1] = append(g.Heads[1], Columns()...)
	}
	for _, r := range t.Rows {
		column := slices.Index(priorities, r.Priority)
		if r.Quantity != q || column < 0 {
			continue
		}
		at := slices.IndexFunc(g.Rows, func(line []string) bool { return line[0] == r.Run })
		if at < 0 {
			at = len(g.Rows)
			g.Rows = append(g.Rows, append([]string{r.Run}, slices.Repeat([]string{"-"}, 12)...))
		}
		for i, v := range r.Numbers() {
			g.Rows[at][1+6*column+i] = number(v)
		}
	}
	return g
}

// variances is the thesis's table 6.
func (t *Tables) variances() *Grid {
	g := &Grid{Left: 1, Heads: [][]string{{"wait variance", "all"}}}
	for i := range t.Variances[0].Upstreams {
		g.Heads[0] = append(g.Heads[0], strconv.Itoa(i))
	}
	for _, r := range t.Variances {
		line := []string{r.Run, number(r.All)}
		for _, v := range r.Upstreams {
			line = append(line, number(v))
		}
		g.Rows = append(g.Rows, line)
	}
	return g
}

// number shows two decimal places, or two digits in all if it is too small for
// that. NaN is a dash.
func number(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	if v != 0 && v < 0.005 {
		return strconv.FormatFloat(v, 'e', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}
