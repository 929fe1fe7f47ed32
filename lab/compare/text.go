package compare

import (
	"fmt"
	"io"
	"math"
	"slices"

	"example.org/pilotfish/lab/stats"
)

// WriteText writes the runs, the thesis's tables, other counts, and the comparisons.
// Equal results give equal bytes.
func (r *Set) WriteText(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "%s\n\n%s jobs over %s, %s\n\n", r.Scenario, stats.Thousands(r.Jobs), stats.Span(r.Length), seeds(r.Runs[0].Trials)); err != nil {
		return err
	}
	if err := runs(r).WriteText(w); err != nil {
		return err
	}
	tables := beside(r)
	if err := tables.WriteText(w); err != nil {
		return err
	}
	for _, g := range append([]*stats.Grid{counts(r)}, ratios(r)...) {
		if err := g.WriteText(w); err != nil {
			return err
		}
	}
	return nil
}

// runs is a line for each run.
func runs(r *Set) *stats.Grid {
	g := &stats.Grid{Left: 3, Heads: [][]string{{"run", "overload", "selection"}}}
	for _, run := range r.Runs {
		g.Rows = append(g.Rows, []string{run.Name, run.Overload, run.Policy})
	}
	return g
}

// seeds tells which seeds were played.
func seeds(trials []Trial) string {
	first, last := trials[0].Seed, trials[len(trials)-1].Seed
	if first == last {
		return fmt.Sprintf("seed %d", first)
	}
	return fmt.Sprintf("seeds %d to %d", first, last)
}

// beside are the thesis's tables. Below each row of ours stand the published row
// and the ratio of ours to it, if there is one.
func beside(r *Set) stats.Tables {
	var t stats.Tables
	for i := range r.Runs {
		run := &r.Runs[i]
		all := run.merged()
		rows := all.Rows(run.Name)
		t.Variances = append(t.Variances, all.WaitVariance(run.Name))
		t.Rows = append(t.Rows, rows...)
		for _, row := range rows {
			at := slices.IndexFunc(r.Reference.Rows, func(p stats.Row) bool {
				return p.Run == run.Reference && p.Priority == row.Priority && p.Quantity == row.Quantity
			})
			if at < 0 {
				continue
			}
			theirs, ratio := r.Reference.Rows[at], row
			ratio.Run = run.Name + " / reference"
			ratio.Summary = over(row.Summary, theirs.Summary)
			theirs.Run = run.Name + ", reference"
			t.Rows = append(t.Rows, theirs, ratio)
		}
		for _, v := range r.Reference.Variances {
			if v.Run == run.Reference {
				v.Run = run.Name + ", reference"
				t.Variances = append(t.Variances, v)
			}
		}
	}
	return t
}

// over divides each number of a by the same of b; it is NaN where that is 0.
func over(a, b stats.Summary) stats.Summary {
	ratio := func(a, b float64) float64 {
		if b == 0 {
			return math.NaN()
		}
		return a / b
	}
	return stats.Summary{
		Mean: ratio(a.Mean, b.Mean), Median: ratio(a.Median, b.Median), P90: ratio(a.P90, b.P90),
		P95: ratio(a.P95, b.P95), P99: ratio(a.P99, b.P99), Max: ratio(a.Max, b.Max),
	}
}

// counts is the table of the other counts.
func counts(r *Set) *stats.Grid {
	g := &stats.Grid{Left: 1, Heads: [][]string{{
		"run", "jobs", "fetches per 1,000", "evictions", "retries", "expired", "overrun", "lost", "unserved",
		"load", "reports per upstream and s",
	}}}
	for _, run := range r.Runs {
		c := mean(run.Trials)
		cells := []string{run.Name, stats.Thousands(int(c.Jobs + 0.5)), fmt.Sprintf("%.1f", c.FetchesPer1k)}
		for _, n := range []float64{c.Evictions, c.Retries, c.Expired, c.Overrun, c.Lost, c.Unserved} {
			cells = append(cells, stats.Thousands(int(n+0.5)))
		}
		g.Rows = append(g.Rows, append(cells,
			fmt.Sprintf("%.3f", c.Load), fmt.Sprintf("%.2f", c.ReportsPerSecond)))
	}
	return g
}
