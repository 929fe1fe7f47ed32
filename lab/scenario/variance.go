package scenario

import (
	"fmt"
	"slices"

	"example.org/pilotfish/lab/stats"
)

// shown is how many servers' variances are printed without published numbers: the smallest, the median and the largest.
const shown = 3

// variances returns the thesis's table 6: the variance of the waits of all low jobs, and of those at each server in
// ascending order. Below a row are the published row, if there is one, and the ratio.
func (r *Results) variances() *stats.Grid {
	servers := shown
	for _, row := range r.scenario.published.variances {
		servers = len(row) - 1
	}
	g := &stats.Grid{Left: 1, Heads: [][]string{{"variance of wait_s, low", "all"}}}
	for n := range servers {
		name := fmt.Sprintf("server %d", n+1)
		if servers == shown {
			name = []string{"least server", "middle", "largest"}[n]
		}
		g.Heads[0] = append(g.Heads[0], name)
	}
	for i, run := range r.scenario.Runs {
		all := make([]stats.Moments, 1+run.Fleet.Upstreams)
		for _, t := range r.trials[i] {
			for n := range t.variance {
				all[n].Merge(t.variance[n])
			}
		}
		var ours []float64
		for n := range all {
			ours = append(ours, all[n].Variance())
		}
		slices.Sort(ours[1:])
		if servers == shown && len(ours) > 1 {
			ours = []float64{ours[0], ours[1], ours[1+(len(ours)-1)/2], ours[len(ours)-1]}
		}
		add := func(name string, of func(n int) float64) {
			row := []string{name}
			for n := range min(len(ours), 1+servers) {
				row = append(row, number(of(n)))
			}
			g.Rows = append(g.Rows, row)
		}
		add(run.Name, func(n int) float64 { return ours[n] })
		if theirs, ok := r.scenario.published.variances[run.Name]; ok {
			theirs = slices.Concat(theirs[:1], slices.Sorted(slices.Values(theirs[1:])))
			add(run.Name+", reference", func(n int) float64 { return theirs[n] })
			add(run.Name+" / reference", func(n int) float64 { return ours[n] / theirs[n] })
		}
	}
	return g
}
