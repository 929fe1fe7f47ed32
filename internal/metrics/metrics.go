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
	*shadow
	*upstreams
	*reloads
	*live

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
		shadow:   newShadow(r),
		reloads:  newReloads(r),
		live:     newLive(r),
		registry: registry,

		upstreams: newUpstreams(r),
	}
	r.MustRegister(newBuildInfo(version, commit), collectors.NewGoCollector(),
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

func newBuildInfo(version, commit string) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "pilotfish_build_info",
		Help:        "1, labelled with the version and commit of pilotfish, and with the Go that built it.",
		ConstLabels: prometheus.Labels{"version": version, "commit": commit, "goversion": runtime.Version()},
	}, func() float64 { return 1 })
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
