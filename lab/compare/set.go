// Package compare holds what came of the runs of a scenario, and shows it to people. Runs
// are compared seed by seed.
package compare

import (
	"reflect"

	"example.org/pilotfish/lab/stats"
)

// Set is the results of a scenario.
type Set struct {
	Scenario string
	// Jobs is how many there are, Length the time in which they come, in seconds.
	Jobs   int
	Length float64
	// Reference is published results, to show beside ours.
	Reference stats.Tables
	Runs      []Run
}

// Run is the results of one run.
type Run struct {
	Name, Overload, Policy string
	// Reference names the published row to show beside this run.
	Reference string
	Trials    []Trial
}

// Trial is one run with one seed. What it holds does not grow with the number of its jobs.
type Trial struct {
	Seed   uint64
	Stats  *stats.Run
	Counts Counts
}

// Counts are the other numbers by which a trial is judged.
type Counts struct {
	Jobs float64
	// Fetches of a project's data: all, and per 1,000 jobs.
	Fetches, FetchesPer1k            float64
	Evictions, Retries               float64
	Expired, Overrun, Lost, Unserved float64
	// Reports are all, and those of an upstream per second.
	Reports, ReportsPerSecond float64
	// Load is the core time used, divided by the core time that the upstreams
	// have until the last job ends.
	Load float64
}

// mean is the mean of the counts of several trials.
func mean(trials []Trial) (m Counts) {
	means := reflect.ValueOf(&m).Elem()
	for i := range trials {
		counts := reflect.ValueOf(trials[i].Counts)
		for i := range counts.NumField() {
			means.Field(i).SetFloat(means.Field(i).Float() + counts.Field(i).Float()/float64(len(trials)))
		}
	}
	return m
}

// merged are the jobs of all trials.
func (r *Run) merged() *stats.Run {
	var all []*stats.Run
	for i := range r.Trials {
		all = append(all, r.Trials[i].Stats)
	}
	return stats.Merged(all)
}
