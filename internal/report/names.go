package report

import (
	"math"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
)

// Names are the metrics of an upstream that make up a report. A new figure has a field, a default, a row in read and a
// line in loadOf.
type Names struct {
	// Stalled is the gauge of joblets that are ready and wait for a core. A report without this
	// metric is invalid; "none" counts as 0.
	Stalled string `yaml:"stalled"`
	// Running is the gauge of running jobs. A report without this metric is invalid; "none"
	// counts as 0.
	Running string `yaml:"running"`
	// Cores is the gauge of cores.
	Cores string `yaml:"cores"`
	// CoresBusy is the gauge of busy cores.
	CoresBusy string `yaml:"cores_busy"`
	// Completed is the counter of completed jobs, failed ones included.
	Completed string `yaml:"completed"`
	// Failed is the counter of completed jobs that failed because of the
	// upstream. With it, a sidecar learns from the failures of the jobs of other sidecars. If at
	// least half of the jobs between two reports failed, the first failure of a job of its own
	// opens its breaker. breaker.failures failures in a row of jobs of other sidecars open it too.
	Failed string `yaml:"failed"`
	// PrefixCache is the prefix of the names of two counters of bytes of prompts, which count a prompt when the upstream
	// starts to read it: PREFIX_queries_total counts all bytes, PREFIX_hits_total those found in the cache.
	PrefixCache string `yaml:"prefix_cache"`
	// Wait is the histogram or summary of the waiting times of jobs, in seconds.
	Wait string `yaml:"wait"`
}

// defaultNames returns the metrics of the reference server.
func defaultNames() Names {
	return Names{
		Stalled:     "ruleserver_stalled_joblets",
		Running:     "ruleserver_jobs_running",
		Cores:       "ruleserver_cores",
		CoresBusy:   "ruleserver_cores_busy",
		Completed:   "ruleserver_jobs_completed_total",
		Failed:      `ruleserver_jobs_completed_total{outcome="failed"}`,
		PrefixCache: none,
		Wait:        "ruleserver_wait_seconds",
	}
}

// read parses the names. It adds invalid ones to f.
func (n *Names) read(f *settings.Faults) metrics {
	all := metrics{}
	for _, name := range []struct{ figure, text string }{
		{"stalled", n.Stalled},
		{"running", n.Running},
		{"cores", n.Cores},
		{"cores_busy", n.CoresBusy},
		{"completed", n.Completed},
		{"failed", n.Failed},
		{"prefix_cache", n.PrefixCache},
		{"wait", n.Wait},
	} {
		m, err := parseMetric(name.text)
		switch {
		case err != nil:
			f.Add(name.figure, "%q %v", name.text, err)
		case name.figure == "wait" && m.name != "":
			all["wait_sum"] = metric{m.name + "_sum", m.labels, m.scale}
			all["wait_count"] = metric{m.name + "_count", m.labels, 1}
		case name.figure == "prefix_cache" && m.name != "":
			all["prefix_queries"] = metric{m.name + "_queries_total", m.labels, m.scale}
			all["prefix_hits"] = metric{m.name + "_hits_total", m.labels, m.scale}
		default:
			all[name.figure] = m
		}
	}
	if n.Stalled == none && n.Running == none {
		f.Add("running", "one of running and stalled must be a metric: without them the load is unknown")
	}
	return all
}

// loadOf converts figures to a report, and returns the total of the upstream's waits in seconds. A
// missing metric for running or stalled is an error: assuming 0 would attract all jobs to an upstream
// that only lacks the metric.
func loadOf(f figures, all metrics) (r pool.Report, wait total, err error) {
	if r.Stalled, err = levels(f, all, "stalled"); err != nil {
		return r, wait, err
	}
	r.ByPriority = f["stalled"].byPriority
	if r.Running, err = levels(f, all, "running"); err != nil {
		return r, wait, err
	}
	r.Cores = int(math.Ceil(max(sum(f, all, "cores"), 0))) // a fraction of a core still runs one joblet
	r.CoresBusy = sum(f, all, "cores_busy")
	r.Completed = sum(f, all, "completed")
	r.Failed = sum(f, all, "failed")
	if queries, hits := sum(f, all, "prefix_queries"), sum(f, all, "prefix_hits"); hits >= 0 {
		r.Read = max(queries-hits, 0)
	}
	wait = total{sum(f, all, "wait_sum"), sum(f, all, "wait_count")}
	r.Begun = max(wait.count, 0)
	return r, wait, nil
}
