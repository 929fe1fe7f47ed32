package metrics

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"example.org/pilotfish/internal/pool"
)

// Live is the state at one instant that a scrape shows.
type Live struct {
	// Upstreams are those in the pool, each once.
	Upstreams []pool.State
	Discovery Discovery
	// BodyBytes is what the bodies kept for retries take.
	BodyBytes int64
}

// Discovery is what discovery has done so far.
type Discovery struct {
	// Age is the time since a set was last accepted; negative when none ever was.
	Age time.Duration
	// Applied and Refused count sets of upstreams. Failed counts requests without a
	// reply that could be read.
	Applied, Refused, Failed uint64
}

// Source returns the state at now. It must be safe for concurrent use, quick,
// and change nothing.
type Source func(now time.Time) Live

// live is a collector that reads the state from a Source at each scrape, so that
// an upstream's series end when it leaves.
type live struct {
	source atomic.Pointer[Source]

	inFlight, stalled, reportAge, eligible, breaker, level figure
	discoveryAge, bodyBytes                                figure
	discoverySets, discoveryErrors                         figure
}

func newLive(r registrar) *live {
	gauge := func(name, help string, labels ...string) figure {
		return figure{prometheus.NewDesc(name, help, labels, nil), prometheus.GaugeValue}
	}
	counter := func(name, help string, labels ...string) figure {
		return figure{prometheus.NewDesc(name, help, labels, nil), prometheus.CounterValue}
	}
	l := &live{
		inFlight:        gauge("pilotfish_upstream_in_flight", "Jobs sent there by this sidecar and not finished.", "upstream"),
		stalled:         gauge("pilotfish_upstream_stalled", "Stalled joblets in the upstream's last report.", "upstream"),
		reportAge:       gauge("pilotfish_upstream_report_age_seconds", "Age of the upstream's last report; absent when there was none.", "upstream"),
		eligible:        gauge("pilotfish_upstream_eligible", "1 if the upstream may be picked now, panic mode and a drain of all upstreams aside, else 0.", "upstream"),
		breaker:         gauge("pilotfish_breaker_state", "0 closed, 1 half open, 2 open.", "upstream"),
		level:           gauge("pilotfish_overload_level", "Which jobs the upstream may take for its load: 1 is all, 0 is none.", "upstream"),
		discoveryAge:    gauge("pilotfish_discovery_age_seconds", "Time since discovery last accepted a set of upstreams; absent before the first."),
		bodyBytes:       gauge("pilotfish_body_bytes", "Bytes of the bodies kept for retries."),
		discoverySets:   counter("pilotfish_discovery_sets_total", "Changes of the set of upstreams, and sets refused as doubtful.", "result"),
		discoveryErrors: counter("pilotfish_discovery_errors_total", "Requests to discovery's source without a reply that could be read."),
	}
	r.MustRegister(l)
	return l
}

// SetSource says where live state is read from; before, a scrape has none.
func (l *live) SetSource(s Source) { l.source.Store(&s) }

// Describe implements prometheus.Collector.
func (l *live) Describe(ch chan<- *prometheus.Desc) {
	for _, f := range []figure{
		l.inFlight, l.stalled, l.reportAge, l.eligible, l.breaker, l.level,
		l.discoveryAge, l.bodyBytes, l.discoverySets, l.discoveryErrors,
	} {
		ch <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (l *live) Collect(ch chan<- prometheus.Metric) {
	source := l.source.Load()
	if source == nil {
		return
	}
	now := (*source)(time.Now())
	for _, u := range now.Upstreams {
		l.collectUpstream(ch, u)
	}
	if now.Discovery.Age >= 0 {
		l.discoveryAge.send(ch, now.Discovery.Age.Seconds())
	}
	l.bodyBytes.send(ch, float64(now.BodyBytes))
	l.discoverySets.send(ch, float64(now.Discovery.Applied), "applied")
	l.discoverySets.send(ch, float64(now.Discovery.Refused), "refused")
	l.discoveryErrors.send(ch, float64(now.Discovery.Failed))
}

func (l *live) collectUpstream(ch chan<- prometheus.Metric, u pool.State) {
	l.inFlight.send(ch, float64(u.InFlight), u.Address)
	l.eligible.send(ch, boolean(u.Eligible), u.Address)
	l.breaker.send(ch, float64(u.Breaker.State), u.Address)
	l.level.send(ch, u.Level, u.Address)
	if u.ReportAge >= 0 {
		l.reportAge.send(ch, u.ReportAge, u.Address)
		l.stalled.send(ch, u.Stalled, u.Address)
	}
}

// figure is a metric whose value is known only at a scrape.
type figure struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// send sends the figure's value; one that Prometheus cannot show, for a label
// that is not UTF-8, becomes an error of the scrape.
func (f figure) send(ch chan<- prometheus.Metric, value float64, labels ...string) {
	m, err := prometheus.NewConstMetric(f.desc, f.kind, value, labels...)
	if err != nil {
		m = prometheus.NewInvalidMetric(f.desc, err)
	}
	ch <- m
}
