// Package metrics holds every metric that pilotfish exports to Prometheus.
//
// Counters and histograms are updated at each event, through the methods of Metrics.
// Gauges of the current state are read from a Source at each scrape; a scrape changes
// no state. Label values are upstream addresses or come from closed sets. Projects and
// other texts of submitters are never labels, so the number of series is bounded.
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

	"example.org/pilotfish/internal/settings"
)

// Limits of scraping. Further concurrent scrapes get 503.
const (
	maxScrapes    = 4
	scrapeTimeout = 10 * time.Second
)

// Metrics has the methods of all of pilotfish's collectors. They are safe for
// concurrent use.
type Metrics struct {
	*jobs
	*attempts
	*upstreams
	*reloads

	probes, withdrawals pair

	registry *prometheus.Registry
	summary  bool // see Settings.Upstreams
}

// Settings is the section "metrics" of a configuration file.
type Settings struct {
	// Upstreams says which metrics have a series for each upstream. all: every metric of upstreams. summary: only those that the
	// alerts need, and gauges of what is wrong with an upstream only while it is. docs/operate.md has the number of series.
	Upstreams string `yaml:"upstreams"`
}

// The values of Settings.Upstreams.
const (
	all     = "all"
	summary = "summary"
)

// Default is the settings of an empty file.
func Default() Settings { return Settings{Upstreams: all} }

// Check reports what cannot be used.
func (s Settings) Check(f *settings.Faults) {
	f.OneOf("upstreams", s.Upstreams, []string{all, summary})
}

// New returns the collectors on a new registry. version and commit identify the
// build of pilotfish.
func New(s Settings, version, commit string) *Metrics {
	registry := prometheus.NewRegistry()
	r := registrar{registry, promauto.With(registry)}
	m := &Metrics{
		jobs:     newJobs(r),
		attempts: newAttempts(r),
		reloads:  newReloads(r),
		probes: newPair(r, "pilotfish_probes_total",
			"Probes of upstreams before a job was sent: answered in time, or failed, so that the last report counted.", "answered", "failed"),
		withdrawals: newPair(r, "pilotfish_withdrawals_total",
			"Requests to withdraw a waiting job, so that it goes to an idle upstream: accepted, or refused because it has started.", "accepted", "refused"),
		registry: registry,
		summary:  s.Upstreams == summary,
	}
	m.upstreams = newUpstreams(r, m.summary)
	r.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "pilotfish_build_info",
		Help:        "Always 1; the labels are the version and commit of pilotfish and the version of Go.",
		ConstLabels: prometheus.Labels{"version": version, "commit": commit, "goversion": runtime.Version()},
	}, func() float64 { return 1 })
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler serves the metrics, to at most maxScrapes scrapers at a time. If a collector
// fails, it serves the other metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.InstrumentMetricHandler(m.registry, promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: maxScrapes,
		Timeout:             scrapeTimeout,
		EnableOpenMetrics:   true,
	}))
}

// reloads reports the result of the last reload of the configuration.
type reloads struct{ last, at prometheus.Gauge }

func newReloads(r registrar) *reloads {
	c := &reloads{
		last: r.NewGauge(prometheus.GaugeOpts{
			Name: "pilotfish_config_last_reload_success", Help: "1 if the last reload of the configuration succeeded, 0 if the file was rejected.",
		}),
		at: r.NewGauge(prometheus.GaugeOpts{
			Name: "pilotfish_config_last_reload_success_timestamp_seconds",
			Help: "Time of the last successful reload of the configuration, as a Unix timestamp.",
		}),
	}
	c.last.Set(1) // the configuration read at start-up
	c.at.SetToCurrentTime()
	return c
}

// Reloaded records a reload of the configuration.
func (c *reloads) Reloaded(applied bool) {
	if applied {
		c.at.SetToCurrentTime()
	}
	c.last.Set(boolean(applied))
}

// pair counts events with two outcomes.
type pair struct{ good, bad prometheus.Counter }

func newPair(r registrar, name, help, good, bad string) pair {
	outcomes := r.counters(name, help, "outcome")
	return pair{good: outcomes.WithLabelValues(good), bad: outcomes.WithLabelValues(bad)}
}

func (p pair) count(good bool) {
	if good {
		p.good.Inc()
	} else {
		p.bad.Inc()
	}
}

// Probed counts a load report that was requested from an upstream before a job was sent; answered is false if the request failed or
// timed out.
func (m *Metrics) Probed(answered bool) { m.probes.count(answered) }

// Withdrawn counts a request to withdraw a job.
func (m *Metrics) Withdrawn(accepted bool) { m.withdrawals.count(accepted) }

// registrar creates and registers collectors. A duplicate name is a bug and panics.
// The series of closed label sets are created at start-up, so they are 0 before the
// first event, and an event needs no lookup.
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

// histograms uses classic buckets only: native ones need a map lookup for each value.
func (r registrar) histograms(name, help string, bounds []float64, labels ...string) *prometheus.HistogramVec {
	return r.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: bounds}, labels)
}

// summaries uses no quantiles: sum and count give the mean over any period.
func (r registrar) summaries(name, help string, labels ...string) *prometheus.SummaryVec {
	return r.NewSummaryVec(prometheus.SummaryOpts{Name: name, Help: help}, labels)
}

// The bounds of the classic buckets, in seconds.
var (
	// Jobs of low priority have a median of 0.26 s, a 99th percentile of 168 s
	// and a maximum of 7201 s (the thesis, table 4). There are about two buckets
	// per factor of ten, and more in the range of most jobs.
	jobSeconds = []float64{0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 7200}
	// Most buckets are below 10 s, the default queue timeout.
	queueSeconds = []float64{0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}
	// The stretch of a job without queueing is 1.
	stretches = []float64{1, 1.1, 1.25, 1.5, 2, 3, 5, 10, 30, 100, 1000}
	// Only a few buckets, because each upstream has its own histogram.
	firstByteSeconds = []float64{0.05, 0.25, 1, 5, 30, 120}
)

// byLabel creates the series of the n values of a closed set, indexed by value.
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
