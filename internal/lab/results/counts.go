package results

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

// fields lists every count, for Mean.
func (c *Counts) fields() []*float64 {
	return []*float64{
		&c.Jobs, &c.Prefetches, &c.Fetches, &c.FetchesPer1k, &c.Evictions, &c.Retries,
		&c.Expired, &c.Overrun, &c.Lost, &c.Unserved, &c.Failed, &c.Shed, &c.Complete, &c.Partial, &c.Absent, &c.Preemptions, &c.Reports, &c.ReportsPerSec,
		&c.Load, &c.Imbalance, &c.Backlog, &c.Queued,
	}
}

// Mean is the mean of the counts of several trials.
func Mean(all []Counts) (m Counts) {
	for i := range all {
		for n, v := range all[i].fields() {
			*m.fields()[n] += *v / float64(len(all))
		}
	}
	return m
}
