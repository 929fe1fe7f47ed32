package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"example.org/pilotfish/internal/lab/stats"
)

// writeText shows results as text: the thesis's tables, what else was counted,
// and the comparisons. Equal results give equal bytes.
func (r *results) writeText(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n\n", r.Scenario)
	r.writeRuns(&out)
	tables := r.tables()
	if err := tables.WriteText(&out); err != nil {
		return err
	}
	for _, g := range append([]grid{r.countsGrid()}, r.comparisons()...) {
		g.write(&out)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// writeRuns says what each run is; what all have in common is said once.
func (r *results) writeRuns(out *strings.Builder) {
	all, own := r.settings()
	fmt.Fprintf(out, "%s\n\n", strings.Join(all, ", "))
	g := grid{left: 4, heads: [][]string{{"run", "overload", "selection", ""}}}
	for i, run := range r.Runs {
		g.rows = append(g.rows, []string{run.Name, run.Overload, run.Policy, own[i]})
	}
	g.write(out)
}

// settings says what all runs have in common, and what each has beyond that.
func (r *results) settings() (all, own []string) {
	var said [][]string
	for _, run := range r.Runs {
		said = append(said, append(slices.Clone(run.Settings), seeds(run.Trials)))
	}
	return common(said)
}

// seeds says which seeds were played.
func seeds(trials []trialResult) string {
	var all []string
	for _, t := range trials {
		all = append(all, strconv.FormatUint(t.Seed, 10))
	}
	if len(all) == 1 {
		return "seed " + all[0]
	}
	if last := trials[len(trials)-1].Seed; last-trials[0].Seed == uint64(len(all)-1) {
		return fmt.Sprintf("seeds %d to %d", trials[0].Seed, last)
	}
	return "seeds " + strings.Join(all, ", ")
}

// tables are the thesis's, with the reference's rows and the ratio of ours to
// them below each of ours.
func (r *results) tables() stats.Tables {
	var t stats.Tables
	for i := range r.Runs {
		run := &r.Runs[i]
		t.Variances = append(t.Variances, run.Variance)
		t.Rows = append(t.Rows, run.Rows...)
		for _, row := range run.Rows {
			published, ok := r.published(run, &row)
			if !ok {
				continue
			}
			ratio := row
			ratio.Run = run.Name + " / reference"
			ratio.Summary = over(row.Summary, published.Summary)
			published.Run = run.Name + ", reference"
			t.Rows = append(t.Rows, published, ratio)
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

// published finds the reference's row for one of a run's.
func (r *results) published(run *runResult, row *stats.Row) (stats.Row, bool) {
	for _, p := range r.Reference.Rows {
		if p.Run == run.Reference && p.Priority == row.Priority && p.Quantity == row.Quantity {
			return p, true
		}
	}
	return stats.Row{}, false
}

// over divides each number by the other's; NaN where that is 0.
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

// countsGrid is what else was counted.
func (r *results) countsGrid() grid {
	g := grid{left: 1, heads: [][]string{{
		"run", "jobs", "fetches per 1,000", "evictions", "retries", "expired", "overrun", "lost", "unserved",
		"load", "backlog", "imbalance", "queued", "reports per upstream and s",
	}}}
	for _, run := range r.Runs {
		c := &run.Counts
		cells := []string{run.Name, thousands(int(c.Jobs + 0.5)), fmt.Sprintf("%.1f", c.FetchesPer1k)}
		for _, n := range []float64{c.Evictions, c.Retries, c.Expired, c.Overrun, c.Lost, c.Unserved} {
			cells = append(cells, thousands(int(n+0.5)))
		}
		g.rows = append(g.rows, append(cells,
			fmt.Sprintf("%.3f", c.Load), fmt.Sprintf("%.2f", c.Backlog), fmt.Sprintf("%.2f", c.Imbalance),
			fmt.Sprintf("%.2f", c.Queued), fmt.Sprintf("%.2f", c.ReportsPerSec)))
	}
	return g
}
