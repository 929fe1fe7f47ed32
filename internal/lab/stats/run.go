package stats

import "example.org/pilotfish/pkg/selection"

// Sample is what is counted of one finished job. Times are in seconds.
type Sample struct {
	Priority selection.Priority
	// Upstream numbers the upstream that ran it, from 0; negative is none.
	Upstream int
	// Wait is from the arrival to the start of execution, Execution from there
	// to the end.
	Wait, Execution float64
	// Unloaded is the response time that the job would have with no other
	// job about; 0 is unknown and counts no stretch.
	Unloaded float64
}

// Run gathers the samples of one run: one policy over one workload.
type Run struct {
	by    [selection.Priorities]map[Quantity]*Distribution
	waits []Moments // of low jobs, by upstream
}

// NewRun returns an empty run over a number of upstreams.
func NewRun(upstreams int) *Run {
	r := &Run{waits: make([]Moments, upstreams)}
	for p := range r.by {
		r.by[p] = map[Quantity]*Distribution{
			Duration: NewDistribution(),
			Wait:     NewDistribution(),
			// Finer, as what matters of it lies in its last digits below 1.
			Slowdown: newDistribution(0.0005),
			Stretch:  NewDistribution(),
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
	by[Slowdown].Add(SlowdownOf(s.Wait, s.Execution))
	if s.Unloaded > 0 {
		stretch, _ := StretchOf(s.Wait+s.Execution, s.Unloaded)
		by[Stretch].Add(stretch)
	}
	if s.Priority == selection.Low && s.Upstream >= 0 {
		r.waits[s.Upstream].Add(s.Wait)
	}
}

// Merge counts everything that other did. It panics when the two have
// different numbers of upstreams.
func (r *Run) Merge(other *Run) {
	if len(r.waits) != len(other.waits) {
		panic("stats: runs over different numbers of upstreams do not merge")
	}
	for p := range r.by {
		for _, q := range Quantities() {
			r.by[p][q].Merge(other.by[p][q])
		}
	}
	for i := range r.waits {
		r.waits[i].Merge(&other.waits[i])
	}
}

// Of is the distribution of a quantity over the jobs of a priority.
func (r *Run) Of(q Quantity, p selection.Priority) *Distribution { return r.by[p][q] }

// Rows returns the run's rows of the thesis's tables, high first.
func (r *Run) Rows(name string) []Row {
	var rows []Row
	for _, q := range Quantities() {
		for _, p := range []selection.Priority{selection.High, selection.Low} {
			if d := r.Of(q, p); d.Count() > 0 {
				rows = append(rows, Row{Run: name, Priority: p.String(), Quantity: q, Summary: d.Summary()})
			}
		}
	}
	return rows
}

// WaitVariance returns the run's row of the thesis's table 6: the variance of
// the waits of low jobs that an upstream ran, in square seconds.
func (r *Run) WaitVariance(name string) VarianceRow {
	row := VarianceRow{Run: name}
	var all Moments
	for i := range r.waits {
		all.Merge(&r.waits[i])
		row.Upstreams = append(row.Upstreams, r.waits[i].Variance())
	}
	row.All = all.Variance()
	return row
}
