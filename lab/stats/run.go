// Package stats turns what happened to jobs into the numbers and tables by
// which policies are compared: percentiles, slowdown, variance of the
// wait per upstream, imbalance, and paired comparisons. Its memory does not
// grow with the number of jobs.
package stats

import "example.org/pilotfish/pkg/selection"

// Quantity is what a table tells of jobs.
type Quantity string

const (
	// Duration is from the job's arrival to its end, in seconds.
	Duration Quantity = "duration_s"
	// Wait is from the job's arrival to the start of its execution, in seconds.
	Wait Quantity = "wait_s"
	// Slowdown is the share of a job's time that it waited: see slowdownOf.
	Slowdown Quantity = "slowdown"
)

// Quantities returns all, in the order of tables.
func Quantities() []Quantity { return []Quantity{Duration, Wait, Slowdown} }

// Sample is what is counted of one finished job. Times are in seconds.
type Sample struct {
	Priority selection.Priority
	// Upstream is the number of the upstream that ran the job, from 0; it is
	// negative if there was none.
	Upstream int
	// Wait is from the arrival to the start of execution, Execution from there
	// to the end.
	Wait, Execution float64
}

// Run gathers the samples of one run: one policy over one workload.
type Run struct {
	by    [selection.Priorities]map[Quantity]*Distribution
	waits []moments // of low jobs, by upstream
}

// NewRun returns an empty run over a number of upstreams.
func NewRun(upstreams int) *Run {
	r := &Run{waits: make([]moments, upstreams)}
	for p := range r.by {
		r.by[p] = map[Quantity]*Distribution{
			Duration: NewDistribution(),
			Wait:     NewDistribution(),
			// Finer, because the digits below 1 matter: 0.99 is not 0.999.
			Slowdown: newDistribution(0.0005),
		}
	}
	return r
}

// Add counts a job. It panics when a time is negative, or the upstream is not
// one of the run's.
func (r *Run) Add(s Sample) {
	by := r.by[s.Priority]
	by[Duration].Add(s.Wait + s.Execution)
	by[Wait].Add(s.Wait)
	by[Slowdown].Add(slowdownOf(s.Wait, s.Execution))
	if s.Priority == selection.Low && s.Upstream >= 0 {
		r.waits[s.Upstream].add(s.Wait)
	}
}

// slowdownOf is W/(W+E), the thesis's definition (5.1): 0 for a job that did
// not wait, close to 1 for one that hardly did anything else.
func slowdownOf(wait, execution float64) float64 {
	if wait == 0 {
		return 0
	}
	return wait / (wait + execution)
}

// Merged has counted everything that runs over the same upstreams have counted.
func Merged(runs []*Run) *Run {
	all := NewRun(len(runs[0].waits))
	for _, r := range runs {
		for p := range all.by {
			for _, q := range Quantities() {
				all.by[p][q].merge(r.by[p][q])
			}
		}
		for i := range all.waits {
			all.waits[i].merge(&r.waits[i])
		}
	}
	return all
}

// Summary is that of one quantity of the jobs of a priority.
func (r *Run) Summary(p selection.Priority, q Quantity) Summary { return r.by[p][q].Summary() }

// Rows returns the run's rows of the thesis's tables, high first.
func (r *Run) Rows(name string) []Row {
	var rows []Row
	for _, q := range Quantities() {
		for _, p := range []selection.Priority{selection.High, selection.Low} {
			if s := r.by[p][q].Summary(); s.Count > 0 {
				rows = append(rows, Row{Run: name, Priority: p.String(), Quantity: q, Summary: s})
			}
		}
	}
	return rows
}

// WaitVariance returns the run's row of the thesis's table 6: the variance of
// the waits of low jobs that an upstream ran, in square seconds.
func (r *Run) WaitVariance(name string) VarianceRow {
	row := VarianceRow{Run: name}
	var all moments
	for i := range r.waits {
		all.merge(&r.waits[i])
		row.Upstreams = append(row.Upstreams, r.waits[i].variance())
	}
	row.All = all.variance()
	return row
}
