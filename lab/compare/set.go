// Package compare holds what came of the runs of a scenario, and shows it to people: as
// text and as JSON. Runs are compared seed by seed.
package compare

import (
	"encoding/json"
	"io"
	"reflect"

	"example.org/pilotfish/lab/stats"
)

// Set is the results of a scenario.
type Set struct {
	Scenario string `json:"scenario"`
	// Reference is published results, to show beside ours.
	Reference stats.Tables `json:"reference"`
	Runs      []Run        `json:"runs"`
}

// Run is the results of one run: of all its trials together, and of each.
type Run struct {
	Name     string `json:"name"`
	Overload string `json:"overload"`
	Policy   string `json:"policy"`
	// Sidecars is how many share the jobs. Each knows its own jobs at once, and
	// those of the others from reports.
	Sidecars int `json:"sidecars"`
	// Jobs is how many there are, Length the time in which they come, in seconds.
	Jobs   int     `json:"jobs"`
	Length float64 `json:"length_s"`
	// Reference names the published row to show beside this run.
	Reference string `json:"reference"`

	// Rows and Variance are over the jobs of all trials.
	Rows     []stats.Row       `json:"rows"`
	Variance stats.VarianceRow `json:"wait_variance"`
	// Counts are the means over the trials.
	Counts Counts  `json:"counts"`
	Trials []Trial `json:"trials"`
}

// Trial is one run with one seed.
type Trial struct {
	Seed   uint64      `json:"seed"`
	Rows   []stats.Row `json:"rows"`
	Counts Counts      `json:"counts"`
}

// Counts are the other numbers by which a trial is judged; of several trials,
// the means.
type Counts struct {
	Jobs float64 `json:"jobs"`
	// Fetches of a project's data: all, and per 1,000 jobs.
	Fetches       float64 `json:"fetches"`
	FetchesPer1k  float64 `json:"fetches_per_1000_jobs"`
	Evictions     float64 `json:"evictions"`
	Retries       float64 `json:"retries"`
	Expired       float64 `json:"expired"`
	Overrun       float64 `json:"overrun"`
	Lost          float64 `json:"lost"`
	Unserved      float64 `json:"unserved"`
	Failed        float64 `json:"failed"`
	Reports       float64 `json:"reports"`
	ReportsPerSec float64 `json:"reports_per_upstream_second"`
	// Load is the core time used, divided by the core time that the upstreams
	// have until the last job ends.
	Load float64 `json:"load"`
}

// Mean is the mean of the counts of several trials.
func Mean(all []Counts) (m Counts) {
	means := reflect.ValueOf(&m).Elem()
	for _, c := range all {
		counts := reflect.ValueOf(c)
		for i := range counts.NumField() {
			means.Field(i).SetFloat(means.Field(i).Float() + counts.Field(i).Float()/float64(len(all)))
		}
	}
	return m
}

// Write saves the set as JSON.
func (s *Set) Write(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	return enc.Encode(s)
}

// row is a trial's row of a quantity for jobs of a priority; all is 0 where there is
// no such job.
func (t *Trial) row(q stats.Quantity, priority string) stats.Summary {
	for i := range t.Rows {
		if t.Rows[i].Quantity == q && t.Rows[i].Priority == priority {
			return t.Rows[i].Summary
		}
	}
	return stats.Summary{}
}
