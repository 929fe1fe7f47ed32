// Package metrics holds every figure that pilotfish shows to Prometheus.
//
// Counters and histograms change at the event, through the methods of
// Metrics; what is only the state of the moment is read at a scrape from a
// Source, and a scrape changes nothing. Label values come from closed sets
// and from the upstreams' addresses: no method takes a project or anything
// else that a submitter can invent, so the number of series is bounded.
package metrics

import (
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Bounds on scraping. Scrapers that are too many hear 503.
const (
	maxScrapes    = 4
	scrapeTimeout = 10 * time.Second
)

// Registry is where collectors are registered and gathered from.
type Registry interface {
	prometheus.Registerer
	prometheus.Gatherer
}

// Metrics is all of pilotfish's collectors. Its methods are safe for
// concurrent use.
type Metrics struct {
	*jobs
	*attempts
	*picks
	*failures
	*reloads
	*live

	registry Registry
}

// New registers the collectors with registry; nil is a new one. version is
// pilotfish's own. It fails when registry already holds one of the collectors.
func New(registry Registry, version string) (*Metrics, error) {
	if registry == nil {
		registry = prometheus.NewRegistry()
	}
	r := &registrar{to: registry}
	m := &Metrics{
		jobs:     newJobs(r),
		attempts: newAttempts(r),
		picks:    newPicks(r),
		failures: newFailures(r),
		reloads:  newReloads(r),
		live:     newLive(r),
		registry: registry,
	}
	r.add(newBuildInfo(version))
	r.add(collectors.NewGoCollector())
	r.add(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if len(r.errs) > 0 {
		return nil, fmt.Errorf("metrics: %w", errors.Join(r.errs...))
	}
	return m, nil
}

// Handler serves the metrics, to a few scrapers at a time. What it can gather
// it serves, even if a part cannot be.
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

// registrar collects the errors of many registrations.
type registrar struct {
	to   prometheus.Registerer
	errs []error
}

func (r *registrar) add(c prometheus.Collector) {
	if err := r.to.Register(c); err != nil {
		r.errs = append(r.errs, err)
	}
}
