package main

import (
	"time"

	"example.org/pilotfish/internal/lab/sim"
)

// counts are what else a trial is judged by; of several trials, the means.
type counts struct {
	Jobs       float64 `json:"jobs"`
	Prefetches float64 `json:"prefetches"`
	// Fetches of a project's data, and how many came on 1,000 jobs.
	Fetches       float64 `json:"fetches"`
	FetchesPer1k  float64 `json:"fetches_per_1000_jobs"`
	Evictions     float64 `json:"evictions"`
	Retries       float64 `json:"retries"`
	Expired       float64 `json:"expired"`
	Overrun       float64 `json:"overrun"`
	Lost          float64 `json:"lost"`
	Unserved      float64 `json:"unserved"`
	Preemptions   float64 `json:"preemptions"`
	Reports       float64 `json:"reports"`
	ReportsPerSec float64 `json:"reports_per_upstream_second"`
	// Load is the core-time used over what the fleet has until the last job
	// ends. Imbalance is the mean distance of an upstream's backlog from the mean
	// backlog, over that mean.
	Load      float64 `json:"load"`
	Imbalance float64 `json:"backlog_imbalance"`
	// Backlog is the mean number of stalled joblets at an upstream, Queued that
	// of jobs that wait in all sidecars.
	Backlog float64 `json:"backlog"`
	Queued  float64 `json:"queued"`

	end time.Duration // of the last job
}

// add counts a job that ended.
func (c *counts) add(r *sim.Result) {
	c.end = max(c.end, r.Arrived+r.Duration())
	c.Jobs++
	if r.Prefetch {
		c.Prefetches++
	}
	c.Retries += float64(max(0, r.Attempts-1))
	switch r.Outcome {
	case sim.Expired:
		c.Expired++
	case sim.Overrun:
		c.Overrun++
	case sim.Lost:
		c.Lost++
	case sim.Unserved:
		c.Unserved++
	case sim.Done:
	}
}

// finish takes in what is known at the end of a run.
func (c *counts) finish(totals sim.Totals, f *fleet, times *timelines) {
	c.Fetches = float64(totals.Fetches)
	c.FetchesPer1k = 1000 * c.Fetches / max(1, c.Jobs)
	c.Evictions = float64(totals.Evictions)
	c.Preemptions = float64(totals.PreemptionsOfServers)
	c.Reports = float64(totals.Reports)
	if upstreamSeconds := c.end.Seconds() * float64(f.Upstreams); upstreamSeconds > 0 {
		c.ReportsPerSec = c.Reports / upstreamSeconds
		c.Load = totals.CoreSeconds / upstreamSeconds / float64(f.Cores)
	}
	c.Imbalance = times.imbalance.Relative()
	c.Backlog, c.Queued = times.backlog.Mean(), times.queued.Mean()
}

// fields lists every count, for means.
func (c *counts) fields() []*float64 {
	return []*float64{
		&c.Jobs, &c.Prefetches, &c.Fetches, &c.FetchesPer1k, &c.Evictions, &c.Retries,
		&c.Expired, &c.Overrun, &c.Lost, &c.Unserved, &c.Preemptions, &c.Reports, &c.ReportsPerSec,
		&c.Load, &c.Imbalance, &c.Backlog, &c.Queued,
	}
}

// mean is the mean of several trials' counts.
func mean(all []counts) (m counts) {
	for i := range all {
		for n, v := range all[i].fields() {
			*m.fields()[n] += *v / float64(len(all))
		}
	}
	return m
}
