package compare

import (
	"example.org/pilotfish/lab/stats"
	"example.org/pilotfish/pkg/selection"
)

// measure is one number by which trials are compared.
type measure struct {
	name string
	of   func(*Trial) float64
}

// ratio is the ratio of the means over the seeds, which are those of all runs; ok is false
// where a base is 0.
func (m measure) ratio(base, other *Run) (r stats.Interval, ok bool) {
	var bases, others []float64
	for i := range base.Trials {
		bases, others = append(bases, m.of(&base.Trials[i])), append(others, m.of(&other.Trials[i]))
	}
	return stats.Ratio(bases, others)
}

// table is the measures of one table of ratios.
type table struct {
	title   string
	columns []measure
}

// tables are those of the text.
func tables() []table {
	var all []table
	for _, q := range stats.Quantities() {
		for _, p := range []selection.Priority{selection.High, selection.Low} {
			t := table{title: string(q) + ", " + p.String()}
			for i, name := range stats.Columns()[:5] {
				t.columns = append(t.columns, measure{name, func(t *Trial) float64 { return t.Stats.Summary(p, q).Numbers()[i] }})
			}
			all = append(all, t)
		}
	}
	return append(all, table{"what else was counted", []measure{
		{"fetches", func(t *Trial) float64 { return t.Counts.Fetches }},
		{"expired", func(t *Trial) float64 { return t.Counts.Expired }},
		{"lost", func(t *Trial) float64 { return t.Counts.Lost }},
		{"reports", func(t *Trial) float64 { return t.Counts.Reports }},
	}})
}

// ratios compare each run with the first. A table without a ratio is
// left out.
func ratios(s *Set) []*stats.Grid {
	var grids []*stats.Grid
	for _, table := range tables() {
		g := &stats.Grid{Title: "ratio to " + s.Runs[0].Name + ": " + table.title, Left: 1, Heads: [][]string{{"run"}}}
		for _, m := range table.columns {
			g.Heads[0] = append(g.Heads[0], m.name)
		}
		shown := false
		for i := range s.Runs[1:] {
			run := &s.Runs[i+1]
			cells := []string{run.Name}
			for _, m := range table.columns {
				cell := "-"
				if r, ok := m.ratio(&s.Runs[0], run); ok {
					cell, shown = r.Text(3, len(run.Trials)), true
				}
				cells = append(cells, cell)
			}
			g.Rows = append(g.Rows, cells)
		}
		if shown {
			grids = append(grids, g)
		}
	}
	return grids
}
