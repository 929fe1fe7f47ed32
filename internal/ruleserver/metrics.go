package ruleserver

import (
	"github.com/prometheus/client_golang/prometheus"

	"example.org/pilotfish/internal/ruleserver/executor"
	"example.org/pilotfish/internal/ruleserver/rules"
)

// metrics are the metrics of jobs. Those of the executor are read at a scrape by executorMetrics.
type metrics struct {
	jobs  *prometheus.CounterVec
	wait  *prometheus.HistogramVec
	saved *prometheus.CounterVec

	prefetches *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer, load func() executor.Load, statistics func() executor.AllStatistics) *metrics {
	m := &metrics{
		jobs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ruleserver_jobs_completed_total",
			Help: "Jobs that ended.",
		}, []string{"priority", "outcome"}),
		wait: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "ruleserver_wait_seconds",
			Help:    "Time from a job's reception to the start of its first joblet.",
			Buckets: []float64{.001, .01, .1, .5, 1, 2.5, 5, 10, 30, 60, 120, 240, 600},
		}, []string{"priority"}),
	}
	m.saved = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ruleserver_optimised_total",
		Help: "Rules and conditions that the optimisation phase removed, because no item could depend on them.",
	}, []string{"removed"})
	m.optimised(rules.Saved{})
	m.prefetches = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ruleserver_prefetches_completed_total",
		Help: "Prefetch requests that ended. They are not counted as jobs.",
	}, []string{"outcome"})
	for _, p := range []string{executor.High.String(), executor.Low.String()} {
		for _, o := range []Outcome{outcomeOK, outcomeFailed, outcomeCancelled, outcomeTimeout} {
			m.jobs.WithLabelValues(p, string(o))
			m.prefetches.WithLabelValues(string(o))
		}
		m.wait.WithLabelValues(p)
	}
	registry.MustRegister(m.jobs, m.wait, m.saved, m.prefetches, executorMetrics{load, statistics})
	return m
}

// observe counts an ended job.
func (m *metrics) observe(r Record) {
	if r.Outcome == outcomeRejected {
		return
	}
	if r.Prefetch {
		m.prefetches.WithLabelValues(string(r.Outcome)).Inc()
		return
	}
	m.jobs.WithLabelValues(r.Priority, string(r.Outcome)).Inc()
	if r.Facts.Started {
		m.wait.WithLabelValues(r.Priority).Observe(r.Facts.Wait.Seconds())
	}
}

// optimised counts the rules and conditions that the optimisation phase removed from one joblet.
func (m *metrics) optimised(saved rules.Saved) {
	m.saved.WithLabelValues("rules").Add(float64(saved.Operators))
	m.saved.WithLabelValues("conditions").Add(float64(saved.Conditions))
}

// executorMetrics collects the metrics of the load, of joblets (the thesis, 3.4) and of the cache.
type executorMetrics struct {
	load       func() executor.Load
	statistics func() executor.AllStatistics
}

func (c executorMetrics) Describe(descs chan<- *prometheus.Desc) {
	prometheus.DescribeByCollect(c, descs)
}

func (c executorMetrics) Collect(out chan<- prometheus.Metric) {
	const count, gauge = prometheus.CounterValue, prometheus.GaugeValue
	send := func(name, help string, kind prometheus.ValueType, value float64, labels prometheus.Labels) {
		out <- prometheus.MustNewConstMetric(prometheus.NewDesc("ruleserver_"+name, help, nil, labels), kind, value)
	}
	load, all := c.load(), c.statistics()
	for p := range load.Running {
		priority := prometheus.Labels{"priority": executor.Priority(p).String()}
		send("stalled_joblets", "Joblets that are ready and wait for a core.", gauge, float64(load.Stalled[p]), priority)
		send("jobs_running", "Jobs received and not finished, less those whose next joblet is stalled.", gauge, float64(load.Running[p]), priority)
	}
	send("cores", "Joblets that can run at the same time.", gauge, float64(load.Cores), nil)
	send("cores_busy", "Cores that run a joblet.", gauge, float64(load.Busy), nil)
	for i, s := range all.Kinds {
		kind := executor.Kind(i).String()
		of := prometheus.Labels{"kind": kind}
		send("joblets_executed_total", "Joblets that ran to their end.", count, float64(s.Executed), of)
		send("joblet_run_seconds_total", "Time that joblets ran.", count, s.Run.Seconds(), of)
		send("joblet_queue_seconds_total", "Time that joblets waited for a core.", count, s.Queue.Seconds(), of)
		for how, n := range map[string]int{"cached": s.Cached, "joined": s.Joined} {
			send("joblets_saved_total", "Joblets that did not run for a job: their result was cached, or they ran for another job.",
				count, float64(n), prometheus.Labels{"kind": kind, "how": how})
		}
	}
	send("cache_evictions_total", "Results that were evicted to make room for others.", count, float64(all.Evictions), nil)
	send("cache_bytes", "Size of the cached results.", gauge, float64(all.Bytes), nil)
}
