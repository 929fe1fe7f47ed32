package results

import "reflect"

// Counts are the other numbers by which a trial is judged; of several trials,
// the means.
type Counts struct {
	Jobs       float64 `json:"jobs"`
	Prefetches float64 `json:"prefetches"`
	// Fetches of a project's data: all, and per 1,000 jobs.
	Fetches      float64 `json:"fetches"`
	FetchesPer1k float64 `json:"fetches_per_1000_jobs"`
	Evictions    float64 `json:"evictions"`
	Retries      float64 `json:"retries"`
	Expired      float64 `json:"expired"`
	Overrun      float64 `json:"overrun"`
	Lost         float64 `json:"lost"`
	Unserved     float64 `json:"unserved"`
	Failed       float64 `json:"failed"`
	Shed         float64 `json:"shed,omitempty"`
	// Complete, Partial and Absent are how much of an answer jobs had.
	Complete      float64 `json:"complete"`
	Partial       float64 `json:"partial"`
	Absent        float64 `json:"absent"`
	Preemptions   float64 `json:"preemptions"`
	Reports       float64 `json:"reports"`
	ReportsPerSec float64 `json:"reports_per_upstream_second"`
	// Load is the core time used, divided by the core time that the upstreams
	// have until the last job ends. Imbalance is the mean distance of an
	// upstream's backlog from the mean backlog, divided by the mean backlog.
	Load      float64 `json:"load"`
	Imbalance float64 `json:"backlog_imbalance"`
	// Backlog is the mean number of stalled joblets at an upstream, Queued the
	// mean number of jobs that wait in all sidecars.
	Backlog float64 `json:"backlog"`
	Queued  float64 `json:"queued"`
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
