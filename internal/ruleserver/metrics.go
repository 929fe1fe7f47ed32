package ruleserver

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"example.org/pilotfish/internal/ruleserver/executor"
)

// metrics count what happens to jobs. loadCollector reads what the executor counts
// from one snapshot for each scrape, so that these numbers always agree.
type metrics struct {
	jobs            *prometheus.CounterVec
	wait, execution *prometheus.HistogramVec
}

func newMetrics(registry prometheus.Registerer, load func() figures) *metrics {
	m := &metrics{
		jobs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ruleserver_jobs_completed_total",
			Help: "Jobs that ended, without prefetches.",
		}, []string{"priority", "outcome"}),
		wait: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "ruleserver_wait_seconds",
			Help:    "Time from a job's reception to the start of its first joblet.",
			Buckets: []float64{.001, .01, .1, .5, 1, 2.5, 5, 10, 30, 60, 120, 240, 600},
		}, []string{"priority"}),
		execution: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "ruleserver_execution_seconds",
			Help:    "Time from the start of a job's first joblet to the end of its last.",
			Buckets: []float64{.001, .01, .1, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200},
		}, []string{"priority"}),
	}
	m.reset()
	registry.MustRegister(m.jobs, m.wait, m.execution, newLoadCollector(load))
	return m
}

// reset sets all counts to zero.
func (m *metrics) reset() {
	m.jobs.Reset()
	m.wait.Reset()
	m.execution.Reset()
	for _, p := range executor.Priorities() {
		for _, o := range []Outcome{outcomeOK, outcomeFailed, outcomeCancelled, outcomeTimeout} {
			m.jobs.WithLabelValues(p.String(), string(o))
		}
		m.wait.WithLabelValues(p.String())
		m.execution.WithLabelValues(p.String())
	}
}

// observe counts a job that ended.
func (m *metrics) observe(r Record) {
	if r.Prefetch || r.Outcome == outcomeRejected {
		return
	}
	m.jobs.WithLabelValues(r.Priority, string(r.Outcome)).Inc()
	if r.Facts.Started {
		m.wait.WithLabelValues(r.Priority).Observe(r.Facts.Wait.Seconds())
	}
	if r.Status == http.StatusOK {
		m.execution.WithLabelValues(r.Priority).Observe(r.Facts.Execution.Seconds())
	}
}

// loadCollector makes metrics of one snapshot of the load.
type loadCollector struct {
	load func() figures

	stalled, running, cores, busy, started, completed, fetches, evictions *prometheus.Desc
}

func newLoadCollector(load func() figures) *loadCollector {
	describe := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("ruleserver_"+name, help, labels, nil)
	}
	return &loadCollector{
		load:      load,
		stalled:   describe("stalled_joblets", "Joblets that are ready and wait for a core.", "priority"),
		running:   describe("jobs_running", "Jobs and prefetches received and not finished, less those whose next joblet is stalled.", "priority"),
		cores:     describe("cores", "Joblets that can run at the same time."),
		busy:      describe("cores_busy", "Cores that run a joblet."),
		started:   describe("joblets_started_total", "Joblets that started.", "priority", "kind"),
		completed: describe("joblets_completed_total", "Joblets that ended, including those that failed.", "priority", "kind"),
		fetches:   describe("fetches_total", "Fetches of a project's data that started."),
		evictions: describe("evictions_total", "Results evicted from the cache to make room."),
	}
}

func (c *loadCollector) Describe(descs chan<- *prometheus.Desc) {
	prometheus.DescribeByCollect(c, descs)
}

func (c *loadCollector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	counter := func(d *prometheus.Desc, value uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value), labels...)
	}
	load := c.load()
	var fetches uint64
	for _, p := range executor.Priorities() {
		gauge(c.stalled, load.stalled[p], p.String())
		gauge(c.running, load.running[p], p.String())
		for _, k := range executor.Kinds() {
			counter(c.started, load.totals.Started[p][k], p.String(), k.String())
			counter(c.completed, load.totals.Completed[p][k], p.String(), k.String())
		}
		fetches += load.totals.Started[p][executor.FeedSource]
	}
	gauge(c.cores, load.cores)
	gauge(c.busy, load.busy)
	counter(c.fetches, fetches)
	counter(c.evictions, load.totals.Evictions)
}
