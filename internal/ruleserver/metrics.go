package ruleserver

import (
	"github.com/prometheus/client_golang/prometheus"

	"example.org/pilotfish/internal/ruleserver/executor"
	"example.org/pilotfish/internal/ruleserver/rules"
)

// metrics count what happens to jobs. loadCollector reads what the executor counts
// from one snapshot for each scrape, so that these numbers always agree.
type metrics struct {
	jobs  *prometheus.CounterVec
	wait  *prometheus.HistogramVec
	saved *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer, load func() executor.Load) *metrics {
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
	for _, p := range []string{executor.High.String(), executor.Low.String()} {
		for _, o := range []Outcome{outcomeOK, outcomeFailed, outcomeCancelled, outcomeTimeout} {
			m.jobs.WithLabelValues(p, string(o))
		}
		m.wait.WithLabelValues(p)
	}
	registry.MustRegister(m.jobs, m.wait, m.saved, loadCollector(load))
	return m
}

// observe counts a job that ended.
func (m *metrics) observe(r Record) {
	if r.Outcome == outcomeRejected {
		return
	}
	m.jobs.WithLabelValues(r.Priority, string(r.Outcome)).Inc()
	if r.Facts.Started {
		m.wait.WithLabelValues(r.Priority).Observe(r.Facts.Wait.Seconds())
	}
}

// optimised counts what the optimisation phase removed from the rules of one joblet.
func (m *metrics) optimised(saved rules.Saved) {
	m.saved.WithLabelValues("rules").Add(float64(saved.Operators))
	m.saved.WithLabelValues("conditions").Add(float64(saved.Conditions))
}

// loadCollector makes metrics of one snapshot of the load.
type loadCollector func() executor.Load

func (c loadCollector) Describe(descs chan<- *prometheus.Desc) {
	prometheus.DescribeByCollect(c, descs)
}

func (c loadCollector) Collect(out chan<- prometheus.Metric) {
	send := func(name, help string, value int, labels prometheus.Labels) {
		desc := prometheus.NewDesc("ruleserver_"+name, help, nil, labels)
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value))
	}
	load := c()
	for p := range load.Running {
		priority := prometheus.Labels{"priority": executor.Priority(p).String()}
		send("stalled_joblets", "Joblets that are ready and wait for a core.", load.Stalled[p], priority)
		send("jobs_running", "Jobs received and not finished, less those whose next joblet is stalled.",
			load.Running[p], priority)
	}
	send("cores", "Joblets that can run at the same time.", load.Cores, nil)
	send("cores_busy", "Cores that run a joblet.", load.Busy, nil)
}
