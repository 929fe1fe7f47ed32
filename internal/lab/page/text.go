// Package page shows the results of a scenario to people: as text, as figures,
// and as one HTML page that needs no other file.
package page

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"example.org/pilotfish/internal/lab/results"
	"example.org/pilotfish/internal/lab/stats"
)

// Text writes results as text: the runs, the thesis's tables, other counts, and
// the comparisons. Equal results give equal bytes.
func Text(w io.Writer, r *results.Set) error {
	shared, own := settings(r)
	if _, err := fmt.Fprintf(w, "%s\n\n%s\n\n", r.Scenario, strings.Join(shared, ", ")); err != nil {
		return err
	}
	if err := runs(r, own).WriteText(w); err != nil {
		return err
	}
	tables := tables(r)
	if err := tables.WriteText(w); err != nil {
		return err
	}
	if apart := apart(r); len(apart.Rows) > 0 {
		if err := apart.WriteText(w); err != nil {
			return err
		}
	}
	for _, g := range append([]*stats.Grid{counts(r)}, comparisons(r)...) {
		if err := g.WriteText(w); err != nil {
			return err
		}
	}
	return nil
}

// runs is a line for each run, with the settings that are its own.
func runs(r *results.Set, own []string) *stats.Grid {
	g := &stats.Grid{Left: 4, Heads: [][]string{{"run", "overload", "selection", ""}}}
	for i, run := range r.Runs {
		g.Rows = append(g.Rows, []string{run.Name, run.Overload, run.Policy, own[i]})
	}
	return g
}

// settings splits the runs' settings into those that all runs share, and those
// that each has beyond them.
func settings(r *results.Set) (shared, own []string) {
	var all [][]string
	for _, run := range r.Runs {
		all = append(all, append(slices.Clone(run.Settings), seeds(run.Trials)))
	}
	for _, point := range all[0] {
		if !slices.ContainsFunc(all, func(points []string) bool { return !slices.Contains(points, point) }) {
			shared = append(shared, point)
		}
	}
	for _, points := range all {
		rest := slices.DeleteFunc(points, func(point string) bool { return slices.Contains(shared, point) })
		own = append(own, strings.Join(rest, ", "))
	}
	return shared, own
}

// seeds tells which seeds were played.
func seeds(trials []results.Trial) string {
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

// tables are the thesis's tables. Below each row of ours stand the published row
// and the ratio of ours to it, if there is one.
func tables(r *results.Set) stats.Tables {
	var t stats.Tables
	for i := range r.Runs {
		run := &r.Runs[i]
		t.Variances = append(t.Variances, run.Variance)
		t.Rows = append(t.Rows, run.Rows...)
		for _, row := range run.Rows {
			theirs, ok := published(r, run, &row)
			if !ok {
				continue
			}
			ratio := row
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

// apart is what the first crowd's project got, and what all others did.
func apart(r *results.Set) stats.Tables {
	t := stats.Tables{Groups: []string{results.Crowd, results.Others}}
	for _, run := range r.Runs {
		t.Rows = append(t.Rows, run.Apart...)
	}
	return t
}

// published finds the published row to show beside a row of a run.
func published(r *results.Set, run *results.Run, row *stats.Row) (stats.Row, bool) {
	for _, p := range r.Reference.Rows {
		if p.Run == run.Reference && p.Priority == row.Priority && p.Quantity == row.Quantity {
			return p, true
		}
	}
	return stats.Row{}, false
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
func counts(r *results.Set) *stats.Grid {
	g := &stats.Grid{Left: 1, Heads: [][]string{{
		"run", "jobs", "fetches per 1,000", "evictions", "retries", "expired", "overrun", "lost", "unserved",
		"load", "backlog", "imbalance", "queued", "reports per upstream and s",
	}}}
	shed := slices.ContainsFunc(r.Runs, func(run results.Run) bool { return run.Counts.Shed > 0 })
	if shed {
		g.Heads[0] = slices.Insert(g.Heads[0], 9, "shed")
	}
	for _, run := range r.Runs {
		c := &run.Counts
		cells := []string{run.Name, stats.Thousands(int(c.Jobs + 0.5)), fmt.Sprintf("%.1f", c.FetchesPer1k)}
		for _, n := range []float64{c.Evictions, c.Retries, c.Expired, c.Overrun, c.Lost, c.Unserved} {
			cells = append(cells, stats.Thousands(int(n+0.5)))
		}
		if shed {
			cells = append(cells, stats.Thousands(int(c.Shed+0.5)))
		}
		g.Rows = append(g.Rows, append(cells,
			fmt.Sprintf("%.3f", c.Load), fmt.Sprintf("%.2f", c.Backlog), fmt.Sprintf("%.2f", c.Imbalance),
			fmt.Sprintf("%.2f", c.Queued), fmt.Sprintf("%.2f", c.ReportsPerSec)))
	}
	return g
}
