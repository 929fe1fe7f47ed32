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

// comparison is one table.
type comparison struct {
	title   string
	columns []measure
}

// measures are the tables of the comparisons, with the columns of each.
func measures() []comparison {
	var tables []comparison
	for _, q := range stats.Quantities() {
		for _, p := range []string{"high", "low"} {
			tables = append(tables, comparison{string(q) + ", " + p, []measure{
				{"mean", func(t *results.Trial) float64 { return t.Summary(q, p).Mean }},
				{"median", func(t *results.Trial) float64 { return t.Summary(q, p).Median }},
				{"p90", func(t *results.Trial) float64 { return t.Summary(q, p).P90 }},
				{"p95", func(t *results.Trial) float64 { return t.Summary(q, p).P95 }},
				{"p99", func(t *results.Trial) float64 { return t.Summary(q, p).P99 }},
			}})
		}
	}
	return append(tables, comparison{"what else was counted", []measure{
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
	theirs, own := results.Pairs(base, run, m.of)
	if len(own) == 1 && theirs[0] > 0 {
		return fmt.Sprintf("%.3f", own[0]/theirs[0])
	}
	// Every cell has a random source of its own: it does not depend on the others.
	ratio, err := stats.Ratio(theirs, own, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		return "-" // the runs share no seed, or some trial of the base has 0
	}
	return fmt.Sprintf("%.3f [%.3f, %.3f]", ratio.Value, ratio.Low, ratio.High)
}
