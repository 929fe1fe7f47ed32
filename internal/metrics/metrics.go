// Package metrics holds every metric that pilotfish shows to Prometheus.
//
// Counters and histograms change at the event, through the methods of Metrics.
// The present state is read at a scrape from a Source, and a scrape changes
// nothing. Label values come from closed sets and from the upstreams' addresses.
// No method takes a project or another text that a submitter can invent, so the
// number of series is bounded.
package metrics

import (
	"fmt"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Bounds on scraping. Excess concurrent scrapes get 503.
const (
	maxScrapes    = 4
	scrapeTimeout = 10 * time.Second
)

// Metrics is all of pilotfish's collectors, and has the methods of each. They are
// safe for concurrent use.
type Metrics struct {
	*jobs
	*attempts
	*upstreams
	*reloads

	registry *prometheus.Registry
}

// New returns the collectors on a registry of their own. version and
// commit are those of pilotfish.
func New(version, commit string) *Metrics {
	registry := prometheus.NewRegistry()
	r := registrar{registry, promauto.With(registry)}
	m := &Metrics{
		jobs:     newJobs(r),
		attempts: newAttempts(r),
		reloads:  newReloads(r),
		registry: registry,

		upstreams: newUpstreams(r),
	}
	r.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "pilotfish_build_info",
		Help:        "1, labelled with the version and commit of pilotfish, and with the Go that built it.",
		ConstLabels: prometheus.Labels{"version": version, "commit": commit, "goversion": runtime.Version()},
	}, func() float64 { return 1 })
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler serves the metrics, to a few scrapers at a time. If one collector
// fails, it serves the metrics of the others.
func (m *Metrics) Handler() http.Handler {
	return promhttp.InstrumentMetricHandler(m.registry, promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: maxScrapes,
		Timeout:             scrapeTimeout,
		EnableOpenMetrics:   true,
	}))
}

// reloads is whether the configuration read last is in force.
type reloads struct{ last, at prometheus.Gauge }

func newReloads(r registrar) *reloads {
	c := &reloads{
		last: r.NewGauge(prometheus.GaugeOpts{
			Name: "pilotfish_config_last_reload_success", Help: "1 if the configuration read last is in force, 0 if it was refused.",
		}),
		at: r.NewGauge(prometheus.GaugeOpts{
			Name: "pilotfish_config_last_reload_success_timestamp_seconds",
			Help: "When the configuration in force was read, in seconds since 1970.",
		}),
	}
	c.last.Set(1) // the one read at the start
	c.at.SetToCurrentTime()
	return c
}

// Reloaded notes a reload of the configuration.
func (c *reloads) Reloaded(applied bool) {
	if applied {
		c.at.SetToCurrentTime()
	}
	c.last.Set(boolean(applied))
}

// registrar makes collectors and registers them. Two of one name are a bug, and
// panic. Children of closed label sets are made at once: they show as 0 before
// the first event, and an event needs no lookup.
type registrar struct {
	*prometheus.Registry
	promauto.Factory
}

func (r registrar) counter(name, help string) prometheus.Counter {
	return r.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func (r registrar) counters(name, help string, labels ...string) *prometheus.CounterVec {
	return r.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// histograms have classic buckets alone: for native ones, each value is looked up in a map.
func (r registrar) histograms(name, help string, bounds []float64, labels ...string) *prometheus.HistogramVec {
	return r.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: bounds}, labels)
}

// summaries have no quantiles: the sum and the count give the mean of any time.
func (r registrar) summaries(name, help string, labels ...string) *prometheus.SummaryVec {
	return r.NewSummaryVec(prometheus.SummaryOpts{Name: name, Help: help}, labels)
}

// The bounds of the classic buckets, in seconds.
var (
	// Jobs of low priority take 0.26 s in the median, 168 s at the 99th
	// percentile and 7201 s at most (the thesis, table 4). There are about two
	// bounds for each factor of ten, and more where most jobs are.
	jobSeconds = []float64{0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 7200}
	// A job waits for an upstream 10 s unless it says otherwise.
	queueSeconds = []float64{0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}
	// A job that never waits has 1.
	stretches = []float64{1, 1.1, 1.25, 1.5, 2, 3, 5, 10, 30, 100, 1000}
	// Each upstream has its own: few bounds keep them small.
	firstByteSeconds = []float64{0.05, 0.25, 1, 5, 30, 120}
)

// byLabel returns the n children of a closed set, indexed by its values.
func byLabel[L interface {
	~uint8
	fmt.Stringer
}, C any](n int, child func(lvs ...string) C, before ...string) []C {
	children := make([]C, n)
	for i := range children {
		children[i] = child(append(before[:len(before):len(before)], L(i).String())...)
	}
	return children
}
