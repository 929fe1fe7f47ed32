package scenario

import (
	"fmt"
	"io"
	"math"
	"strconv"

	"example.org/pilotfish/lab/stats"
	"example.org/pilotfish/pkg/selection"
)

// Results are the results of a scenario.
type Results struct {
	scenario *Scenario
	trials   [][]trial // by run and seed
}

// WriteText writes the runs, the thesis's tables, other counts, and the comparison of the runs.
// Equal results give equal bytes.
func (r *Results) WriteText(w io.Writer) error {
	s := r.scenario
	seeds := fmt.Sprintf("seed %d", s.Seed)
	if s.Seeds > 1 {
		seeds = fmt.Sprintf("seeds %d to %d", s.Seed, s.Seed+uint64(s.Seeds)-1)
	}
	runs := &stats.Grid{Left: 3, Heads: [][]string{{"run", "overload", "selection"}}}
	for _, run := range s.Runs {
		runs.Rows = append(runs.Rows, []string{run.Name, run.Overload, run.Policy})
	}
	grids := []*stats.Grid{runs}
	for _, q := range stats.Quantities() {
		grids = append(grids, r.summaries(q))
	}
	if trends := r.trends(); len(trends.Rows) > 0 {
		grids = append(grids, trends)
	}
	grids = append(append(grids, r.variances(), r.counts()), r.ratios()...)
	_, err := fmt.Fprintf(w, "%s\n\n%s jobs over %s, %s\n\n", s.name, stats.Thousands(s.Workload.Len()), stats.Span(s.Workload.Duration), seeds)
	for _, g := range grids {
		if err == nil {
			err = g.WriteText(w)
		}
	}
	return err
}

// priorities is the order of the priorities in tables.
var priorities = []selection.Priority{selection.High, selection.Low}

// summaries returns the thesis's table of a quantity. Below a run's row are the published row, if there is one, and
// the ratio.
func (r *Results) summaries(q stats.Quantity) *stats.Grid {
	g := &stats.Grid{Left: 1, Heads: [][]string{{string(q)}, {"run"}}}
	for _, p := range priorities {
		g.Heads[0] = append(g.Heads[0], p.String(), "", "", "", "", "")
		g.Heads[1] = append(g.Heads[1], stats.Columns()...)
	}
	for i, run := range r.scenario.Runs {
		all := stats.NewRun()
		for _, t := range r.trials[i] {
			all.Merge(t.stats)
		}
		ours, theirs, ratio := []string{run.Name}, []string{run.Name + ", reference"}, []string{run.Name + " / reference"}
		known := false
		for _, p := range priorities {
			sum := all.Summary(p, q)
			row, there := r.scenario.published.results[of(run.Name, p.String(), q)]
			for n, v := range sum.Numbers() {
				their := math.NaN()
				if there {
					their, known = row[n], true
				}
				if sum.Count == 0 {
					v = math.NaN()
				}
				ours, theirs, ratio = append(ours, number(v)), append(theirs, number(their)), append(ratio, number(v/their))
			}
		}
		if g.Rows = append(g.Rows, ours); known {
			g.Rows = append(g.Rows, theirs, ratio)
		}
	}
	return g
}

// number formats a number with two decimal places, or with two digits if it is below 0.005. NaN and infinity are dashes.
func number(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "-"
	case v != 0 && v < 0.005:
		return strconv.FormatFloat(v, 'e', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// counts returns the table of the other counts: means over the seeds.
func (r *Results) counts() *stats.Grid {
	g := &stats.Grid{Left: 1, Heads: [][]string{{
		"run", "jobs", "fetches per 1,000", "evictions", "retries", "expired", "overrun", "lost", "unserved", "left",
		"load", "reports per upstream and s",
	}}}
	formats := map[string]string{"fetches per 1,000": "%.1f", "load": "%.3f", "reports per upstream and s": "%.2f"}
	for i, run := range r.scenario.Runs {
		cells := []string{run.Name}
		for _, name := range g.Heads[0][1:] {
			mean := 0.0
			for _, t := range r.trials[i] {
				mean += t.counts[name] / float64(len(r.trials[i]))
			}
			cell := stats.Thousands(int(mean + 0.5))
			if format, ok := formats[name]; ok {
				cell = fmt.Sprintf(format, mean)
			}
			cells = append(cells, cell)
		}
		g.Rows = append(g.Rows, cells)
	}
	return g
}

// ratios returns tables that compare each run with the first, paired by seed. A table without a ratio is omitted.
func (r *Results) ratios() (grids []*stats.Grid) {
	compare := func(title string, names []string, numbers func(*trial) []float64) {
		title = "ratio to " + r.scenario.Runs[0].Name + ": " + title
		g := &stats.Grid{Title: title, Left: 1, Heads: [][]string{append([]string{"run"}, names...)}}
		shown := false
		for i, run := range r.scenario.Runs[1:] {
			cells := []string{run.Name}
			for column := range names {
				var bases, others []float64
				for n := range r.trials[0] {
					bases = append(bases, numbers(&r.trials[0][n])[column])
					others = append(others, numbers(&r.trials[i+1][n])[column])
				}
				cell := "-"
				if ratio, ok := stats.Ratio(bases, others); ok {
					cell, shown = ratio.Text(3, len(bases)), true
				}
				cells = append(cells, cell)
			}
			g.Rows = append(g.Rows, cells)
		}
		if shown {
			grids = append(grids, g)
		}
	}
	for _, q := range stats.Quantities() {
		for _, p := range priorities {
			compare(string(q)+", "+p.String(), stats.Columns()[:5], func(t *trial) []float64 { return t.stats.Summary(p, q).Numbers() })
		}
	}
	compare("other counts", []string{"fetches", "expired", "lost", "reports"}, func(t *trial) []float64 {
		return []float64{t.counts["fetches"], t.counts["expired"], t.counts["lost"], t.counts["reports"]}
	})
	return grids
}
