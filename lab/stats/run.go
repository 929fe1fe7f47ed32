// Package stats turns what happened to jobs into the numbers and tables by which policies are compared: percentiles,
// slowdown, and paired comparisons. Its memory does not grow with the number of jobs.
package stats

import "example.org/pilotfish/pkg/selection"

// Quantity is what a table tells of jobs.
type Quantity string

const (
	// Duration is from the job's arrival to its end, in seconds.
	Duration Quantity = "duration_s"
	// Wait is from the job's arrival to the start of its execution, in seconds.
	Wait Quantity = "wait_s"
	// AllWaits is Wait and the waits between the job's joblets, in seconds.
	AllWaits Quantity = "all_waits_s"
	// Slowdown is the share of a job's time that it waited: see slowdownOf.
	Slowdown Quantity = "slowdown"
	// Stretch is how many times as long a job took as without any wait (Zhu, Smith and Yang's stretch factor).
	Stretch Quantity = "stretch"
)

// Quantities returns all, in the order of tables.
func Quantities() []Quantity { return []Quantity{Duration, Wait, AllWaits, Slowdown, Stretch} }

// Run gathers the times of one run: one policy over one workload.
type Run [selection.Priorities]map[Quantity]*Distribution

// NewRun returns an empty run.
func NewRun() (r Run) {
	for p := range r {
		// Slowdown is finer, because the digits below 1 matter: 0.99 is not 0.999.
		r[p] = map[Quantity]*Distribution{Duration: NewDistribution(), Wait: NewDistribution(), AllWaits: NewDistribution(), Slowdown: newDistribution(0.0005), Stretch: NewDistribution()}
	}
	return r
}

// Add counts a job. Its wait is from its arrival to the start of execution, execution from there to its end,
// both in seconds. It panics when one is negative.
func (r Run) Add(p selection.Priority, wait, execution float64) { r.AddStalled(p, wait, execution, 0) }

// leastWork replaces shorter executions in a stretch, in seconds.
const leastWork = 0.001

// AddStalled is Add for a job of which the part of its execution is known in which none of its joblets ran.
func (r Run) AddStalled(p selection.Priority, wait, execution, stalled float64) {
	r[p][Duration].Add(wait + execution)
	r[p][Wait].Add(wait)
	r[p][AllWaits].Add(wait + stalled)
	r[p][Slowdown].Add(slowdownOf(wait, execution))
	work := max(leastWork, execution-stalled)
	r[p][Stretch].Add((wait + stalled + work) / work)
}

// slowdownOf is W/(W+E), the thesis's definition (5.1): 0 for a job that did
// not wait, close to 1 for one that hardly did anything else.
func slowdownOf(wait, execution float64) float64 {
	if wait == 0 {
		return 0
	}
	return wait / (wait + execution)
}

// Merge counts everything that another run has counted.
func (r Run) Merge(other Run) {
	for p := range r {
		for q, d := range r[p] {
			d.merge(other[p][q])
		}
	}
}

// Summary is that of one quantity of the jobs of a priority.
func (r Run) Summary(p selection.Priority, q Quantity) Summary { return r[p][q].Summary() }
