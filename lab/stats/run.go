// Package stats computes the numbers and tables that compare policies: percentiles, slowdown and paired
// comparisons. Its memory does not grow with the number of jobs.
package stats

import "example.org/pilotfish/pkg/selection"

// Quantity is a measured property of a job.
type Quantity string

const (
	// Duration is from the job's arrival to its end, in seconds.
	Duration Quantity = "duration_s"
	// Wait is from the job's arrival to the start of its execution, in seconds.
	Wait Quantity = "wait_s"
	// AllWaits is Wait plus the waits between the job's joblets, in seconds.
	AllWaits Quantity = "all_waits_s"
	// Slowdown is the share of its duration that a job waited: see slowdownOf.
	Slowdown Quantity = "slowdown"
	// Stretch is a job's duration divided by its duration without any wait (Zhu, Smith and Yang's stretch factor).
	Stretch Quantity = "stretch"
)

// Quantities returns all quantities, in the order of the tables.
func Quantities() []Quantity { return []Quantity{Duration, Wait, AllWaits, Slowdown, Stretch} }

// Run is the distributions of one run, which is one policy with one workload.
type Run [selection.Priorities]map[Quantity]*Distribution

// NewRun returns an empty run.
func NewRun() (r Run) {
	for p := range r {
		// Slowdown has a smaller error, because 0.99 and 0.999 must differ.
		r[p] = map[Quantity]*Distribution{Duration: NewDistribution(), Wait: NewDistribution(), AllWaits: NewDistribution(), Slowdown: newDistribution(0.0005), Stretch: NewDistribution()}
	}
	return r
}

// Add counts a job. Its wait is the time from its arrival to the start of its execution, execution the time from
// there to its end, both in seconds. It panics if one is negative.
func (r Run) Add(p selection.Priority, wait, execution float64) { r.AddStalled(p, wait, execution, 0) }

// leastWork replaces shorter executions in the calculation of the stretch, in seconds.
const leastWork = 0.001

// AddStalled is Add with stalled: the part of the execution, in seconds, in which no joblet of the job ran.
func (r Run) AddStalled(p selection.Priority, wait, execution, stalled float64) {
	r[p][Duration].Add(wait + execution)
	r[p][Wait].Add(wait)
	r[p][AllWaits].Add(wait + stalled)
	r[p][Slowdown].Add(slowdownOf(wait, execution))
	work := max(leastWork, execution-stalled)
	r[p][Stretch].Add((wait + stalled + work) / work)
}

// slowdownOf is W/(W+E), the thesis's definition (5.1): 0 for a job that did
// not wait, close to 1 for a job that waited almost all the time.
func slowdownOf(wait, execution float64) float64 {
	if wait == 0 {
		return 0
	}
	return wait / (wait + execution)
}

// Merge adds the jobs of another run.
func (r Run) Merge(other Run) {
	for p := range r {
		for q, d := range r[p] {
			d.merge(other[p][q])
		}
	}
}

// Summary returns the summary of one quantity of the jobs of one priority.
func (r Run) Summary(p selection.Priority, q Quantity) Summary { return r[p][q].Summary() }
