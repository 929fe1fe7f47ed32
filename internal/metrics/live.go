package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"example.org/pilotfish/internal/quality"
)

// Live is the state at one instant that a scrape shows.
type Live struct {
	// View has each upstream once.
	quality.View
	Discovery Discovery
	// Limited is how many jobs wait because their project is at its limit.
	Limited int
	// Bounds are what is used of each bound.
	Bounds []Bound
	// CertificateExpires is when the first does of those shown to upstreams and to gateways; zero without one.
	CertificateExpires time.Time
	// LogLinesLost is how many lines of the log could not be written in time.
	LogLinesLost uint64
}

// Bound is how much is used of something, and how much may be.
type Bound struct {
	// Name is a word of a closed set. It names the unit.
	Name        string
	Used, Limit int64
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
	source   Source
	families []family
}

// family is one metric: its description, and how a scrape reads it.
type family struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(now *Live, send send)
}

// send sends a value with the values of its labels.
type send func(value float64, labels ...string)

// SetSource says where live state is read from; before, a scrape has none. Call it once.
func (m *Metrics) SetSource(s Source) { m.registry.MustRegister(&live{s, families()}) }

// Describe implements prometheus.Collector.
func (l *live) Describe(ch chan<- *prometheus.Desc) {
	for _, f := range l.families {
		ch <- f.desc
	}
}

// Collect implements prometheus.Collector. A value that Prometheus cannot show, for
// a label that is not UTF-8, becomes an error of the scrape.
func (l *live) Collect(ch chan<- prometheus.Metric) {
	now := l.source(time.Now())
	for _, f := range l.families {
		f.read(&now, func(value float64, labels ...string) {
			m, err := prometheus.NewConstMetric(f.desc, f.kind, value, labels...)
			if err != nil {
				m = prometheus.NewInvalidMetric(f.desc, err)
			}
			ch <- m
		})
	}
}

func gauge(name, help string, read func(*Live, send), labels ...string) family {
	return family{prometheus.NewDesc(name, help, labels, nil), prometheus.GaugeValue, read}
}

func counter(name, help string, read func(*Live, send), labels ...string) family {
	return family{prometheus.NewDesc(name, help, labels, nil), prometheus.CounterValue, read}
}

// perUpstream is a gauge with a value for each upstream.
func perUpstream(name, help string, value func(*quality.Upstream) float64) family {
	return gauge(name, help, func(now *Live, send send) {
		for i := range now.Upstreams {
			send(value(&now.Upstreams[i]), now.Upstreams[i].Address)
		}
	}, "upstream")
}

// reported is a gauge with a value for each upstream that has reported.
func reported(name, help string, value func(*quality.Upstream) float64) family {
	return gauge(name, help, func(now *Live, send send) {
		for i := range now.Upstreams {
			if u := &now.Upstreams[i]; u.ReportAge >= 0 {
				send(value(u), u.Address)
			}
		}
	}, "upstream")
}
