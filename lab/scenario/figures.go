package scenario

import (
	"fmt"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/lab/figures"
	"example.org/pilotfish/lab/sim"
	"example.org/pilotfish/lab/stats"
)

// samples is how often the levels of upstreams are sampled in a run.
const samples = 600

// watch makes the simulator record jobs and levels for the figures.
func (s *Scenario) watch(c *sim.Config, to *figures.Run) {
	observe, index := c.Observe, map[string]int{}
	c.Observe = func(job *sim.Result) {
		observe(job)
		if job.Prefetch {
			return
		}
		first, whole := job.FirstByte.Seconds(), map[intake.Completeness]float64{intake.Complete: 1, intake.Partial: 0.5}[job.Completeness]
		to.Jobs.Add(job.Arrived.Seconds(), first, job.LastByte.Seconds(), whole)
	}
	c.SampleEvery = max(time.Second, time.Duration(s.Workload.Duration/samples*float64(time.Second)))
	if s.End > 0 {
		c.SampleEvery = max(time.Second, s.End/samples)
	}
	c.Sample = func(at time.Duration, states []pool.State) {
		to.Instants = append(to.Instants, at.Seconds())
		for _, state := range states {
			i, ok := index[state.Address]
			if !ok {
				i = len(to.Levels)
				index[state.Address] = i
				to.Levels = append(to.Levels, figures.Series{Name: state.Address})
			}
			level := state.Level
			if !state.Eligible && level >= 1 { // not eligible for another reason than its load
				level = 0
			}
			to.Levels[i].Values = append(to.Levels[i].Values, level)
		}
	}
}

// Page returns the figures of the results: bars over all seeds, and timelines of each run with the first seed.
func (r *Results) Page() *figures.Page {
	page := &figures.Page{Title: r.scenario.name}
	var names []string
	all := make([]stats.Run, len(r.scenario.Runs))
	for i, run := range r.scenario.Runs {
		names, all[i] = append(names, run.Name), stats.NewRun()
		for _, t := range r.trials[i] {
			all[i].Merge(t.stats)
		}
		drawn := r.trials[i][0].drawn
		drawn.Name = run.Name
		drawn.Jobs.Sort()
		page.Runs = append(page.Runs, drawn)
	}
	page.Bars = figures.Quantities(names, all)
	variance := figures.Bars{Title: "Variance of the waits of low jobs at each upstream, s² (thesis, figure 10)", Groups: names}
	for i := range r.scenario.Runs {
		for n := 1; n < len(r.trials[i][0].variance); n++ {
			var v stats.Moments
			for _, t := range r.trials[i] {
				v.Merge(t.variance[n])
			}
			for len(variance.Series) < n {
				variance.Series = append(variance.Series, figures.Series{Name: fmt.Sprintf("upstream %d", n), Values: figures.Unknown(len(names))})
			}
			variance.Series[n-1].Values[i] = v.Variance()
		}
	}
	page.Bars = append(page.Bars, variance)
	return page
}
