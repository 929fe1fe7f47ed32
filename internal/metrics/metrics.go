// Package metrics holds every metric that pilotfish shows to Prometheus.
//
// Counters and histograms change at the event, through the methods of Metrics.
// The present state is read at a scrape from a Source, and a scrape changes
// nothing. Label values come from closed sets and from the upstreams' addresses.
// No method takes a project or another text that a submitter can invent, so the
// number of series is bounded.
package metrics

import (
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
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
	*picks
	*upstreams
	*prewarms
	*reloads
	*live

	registry *prometheus.Registry
}

// New returns the collectors on a registry of their own. version is that of
// pilotfish.
func New(version string) *Metrics {
	r := registrar{prometheus.NewRegistry()}
	m := &Metrics{
		jobs:     newJobs(r),
		attempts: newAttempts(r),
		picks:    newPicks(r),
		prewarms: newPrewarms(r),
		reloads:  newReloads(r),
		live:     newLive(r),
		registry: r.Registry,

		upstreams: newUpstreams(r),
	}
	r.MustRegister(newBuildInfo(version), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
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

func newBuildInfo(version string) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "pilotfish_build_info",
		Help:        "1, labelled with the versions of pilotfish and of the Go that built it.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	}, func() float64 { return 1 })
}

// reloads counts the configurations read while running.
type reloads struct {
	applied, refused prometheus.Counter
	last, at         prometheus.Gauge
}

func newReloads(r registrar) *reloads {
	results := r.counters("pilotfish_config_reloads_total",
		"Reloads of the configuration; a refused one changed nothing.", "result")
	c := &reloads{
		applied: results.WithLabelValues("applied"),
		refused: results.WithLabelValues("refused"),
		last: r.gauge("pilotfish_config_last_reload_success",
			"1 if the configuration read last is in force, 0 if it was refused."),
		at: r.gauge("pilotfish_config_last_reload_success_timestamp_seconds",
			"When the configuration in force was read, in seconds since 1970."),
	}
	c.last.Set(1) // the one read at the start
	c.at.SetToCurrentTime()
	return c
}

// Reloaded counts a reload of the configuration.
func (c *reloads) Reloaded(applied bool) {
	if applied {
		c.applied.Inc()
		c.at.SetToCurrentTime()
	} else {
		c.refused.Inc()
	}
	c.last.Set(boolean(applied))
}

// prewarms counts the prefetches of projects whose upstream leaves.
type prewarms struct{ fetched, failed prometheus.Counter }

func newPrewarms(r registrar) *prewarms {
	results := r.counters("pilotfish_prewarms_total",
		"Projects that an upstream was asked to fetch because another one leaves.", "result")
	return &prewarms{fetched: results.WithLabelValues("fetched"), failed: results.WithLabelValues("failed")}
}

// Prewarmed counts a prefetch that ended.
func (p *prewarms) Prewarmed(fetched bool) {
	if fetched {
		p.fetched.Inc()
	} else {
		p.failed.Inc()
	}
}
