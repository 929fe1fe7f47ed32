package page

import (
	"fmt"
	"math/rand/v2"

	"example.org/pilotfish/internal/lab/results"
	"example.org/pilotfish/internal/lab/stats"
)

// measure is one number by which trials are compared.
type measure struct {
	name string
	of   func(*results.Trial) float64
}

// measures are the tables of the comparisons, with the columns of each.
func measures() []struct {
	title   string
	columns []measure
} {
	row := func(q stats.Quantity, priority string, of func(*stats.Summary) float64) func(*results.Trial) float64 {
		return func(t *results.Trial) float64 {
			for i := range t.Rows {
				if t.Rows[i].Quantity == q && t.Rows[i].Priority == priority {
					return of(&t.Rows[i].Summary)
				}
			}
			return 0
		}
	}
	type table = struct {
		title   string
		columns []measure
	}
	var tables []table
	for _, q := range stats.Quantities() {
		for _, p := range []string{"high", "low"} {
			tables = append(tables, table{string(q) + ", " + p, []measure{
				{"mean", row(q, p, func(s *stats.Summary) float64 { return s.Mean })},
				{"median", row(q, p, func(s *stats.Summary) float64 { return s.Median })},
				{"p90", row(q, p, func(s *stats.Summary) float64 { return s.P90 })},
				{"p95", row(q, p, func(s *stats.Summary) float64 { return s.P95 })},
				{"p99", row(q, p, func(s *stats.Summary) float64 { return s.P99 })},
			}})
		}
	}
	return append(tables, table{"what else was counted", []measure{
		{"fetches", func(t *results.Trial) float64 { return t.Counts.Fetches }},
		{"imbalance", func(t *results.Trial) float64 { return t.Counts.Imbalance }},
		{"expired", func(t *results.Trial) float64 { return t.Counts.Expired }},
		{"lost", func(t *results.Trial) float64 { return t.Counts.Lost }},
		{"reports", func(t *results.Trial) float64 { return t.Counts.Reports }},
	}})
}

// comparisons compare each run with the run that it is against: the ratio of the
// means over the seeds that both have. If there are several seeds, the ratio has
// a confidence interval of 95 %.
func comparisons(r *results.Set) []*stats.Grid {
	var grids []*stats.Grid
	for _, table := range measures() {
		g := &stats.Grid{Title: "ratio to the run against: " + table.title, Left: 2, Heads: [][]string{{"run", "against"}}}
		for _, m := range table.columns {
			g.Heads[0] = append(g.Heads[0], m.name)
		}
		shown := false
		for i := range r.Runs {
			run := &r.Runs[i]
			base := r.Run(run.Against)
			if base == nil || base.Name == run.Name {
				continue
			}
			cells := []string{run.Name, base.Name}
			for _, m := range table.columns {
				cell := compare(base, run, m)
				shown = shown || cell != "-"
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

// compare is one cell; "-" if the base has no number to compare with.
func compare(base, run *results.Run, m measure) string {
	var a, b []float64
	for i := range run.Trials {
		t := &run.Trials[i]
		if pair := base.Trial(t.Seed); pair != nil {
			a = append(a, m.of(pair))
			b = append(b, m.of(t))
		}
	}
	switch {
	case len(a) == 0:
		return "-"
	case len(a) == 1 && a[0] > 0:
		return fmt.Sprintf("%.3f", b[0]/a[0])
	}
	// Every cell has a random source of its own: it does not depend on the others.
	ratio, err := stats.Ratio(a, b, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		return "-" // some trial of the base has 0
	}
	return fmt.Sprintf("%.3f [%.3f, %.3f]", ratio.Value, ratio.Low, ratio.High)
}
