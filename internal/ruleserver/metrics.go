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

func newMetrics(registry prometheus.Registerer, load func() executor.Load) *metrics {
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
	for _, p := range []string{executor.High.String(), executor.Low.String()} {
		for _, o := range []Outcome{outcomeOK, outcomeFailed, outcomeCancelled, outcomeTimeout} {
			m.jobs.WithLabelValues(p, string(o))
		}
		m.wait.WithLabelValues(p)
		m.execution.WithLabelValues(p)
	}
	registry.MustRegister(m.jobs, m.wait, m.execution, loadCollector(load))
	return m
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
type loadCollector func() executor.Load

func (c loadCollector) Describe(descs chan<- *prometheus.Desc) {
	prometheus.DescribeByCollect(c, descs)
}

func (c loadCollector) Collect(out chan<- prometheus.Metric) {
	send := func(kind prometheus.ValueType, name, help string, value float64, labels prometheus.Labels) {
		out <- prometheus.MustNewConstMetric(prometheus.NewDesc("ruleserver_"+name, help, nil, labels), kind, value)
	}
	gauge, counter := prometheus.GaugeValue, prometheus.CounterValue
	load := c()
	for p, byKind := range load.Started {
		priority := prometheus.Labels{"priority": executor.Priority(p).String()}
		send(gauge, "stalled_joblets", "Joblets that are ready and wait for a core.", float64(load.Stalled[p]), priority)
		send(gauge, "jobs_running", "Jobs and prefetches received and not finished, less those whose next joblet is stalled.",
			float64(load.Running[p]), priority)
		for k, n := range byKind {
			send(counter, "joblets_started_total", "Joblets that started.", float64(n),
				prometheus.Labels{"priority": priority["priority"], "kind": executor.Kind(k).String()})
		}
	}
	send(gauge, "cores", "Joblets that can run at the same time.", float64(load.Cores), nil)
	send(gauge, "cores_busy", "Cores that run a joblet.", float64(load.Busy), nil)
	send(counter, "evictions_total", "Results evicted from the cache to make room.", float64(load.Evictions), nil)
}
