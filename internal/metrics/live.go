package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"example.org/pilotfish/internal/quality"
)

// Source returns the state at now. It must be fast, safe for concurrent use and
// free of side effects.
type Source func(now time.Time) Live

// live is a collector that reads the state from a Source at each scrape. So the
// series of an upstream end when the upstream is removed.
type live struct {
	source   Source
	families []family
	summary  bool
}

// family is one metric and the function that reads it.
type family struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(now *Live, send send)
	omit func(value float64) bool // reports whether a summary leaves it out; nil leaves out nothing
}

// send sends a value with the values of its labels.
type send func(value float64, labels ...string)

// SetSource sets the source of the current state; before, a scrape reports none. Call it once.
func (m *Metrics) SetSource(s Source) { m.registry.MustRegister(&live{s, families(), m.summary}) }

func (l *live) Describe(ch chan<- *prometheus.Desc) {
	for _, f := range l.families {
		ch <- f.desc
	}
}

// Collect implements prometheus.Collector. An invalid value, such as a label that is not
// UTF-8, becomes an error of the scrape.
func (l *live) Collect(ch chan<- prometheus.Metric) {
	now := l.source(time.Now())
	for _, f := range l.families {
		f.read(&now, func(value float64, labels ...string) {
			if l.summary && f.omit != nil && f.omit(value) {
				return
			}
			m, err := prometheus.NewConstMetric(f.desc, f.kind, value, labels...)
			if err != nil {
				m = prometheus.NewInvalidMetric(f.desc, err)
			}
			ch <- m
		})
	}
}

func gauge(name, help string, read func(*Live, send), labels ...string) family {
	return family{desc: prometheus.NewDesc(name, help, labels, nil), kind: prometheus.GaugeValue, read: read}
}

func counter(name, help string, read func(*Live, send), labels ...string) family {
	return family{desc: prometheus.NewDesc(name, help, labels, nil), kind: prometheus.CounterValue, read: read}
}

// perUpstream returns a gauge with a value for each upstream.
func perUpstream(name, help string, value func(*quality.Upstream) float64) family {
	return gauge(name, help, func(now *Live, send send) {
		for i := range now.Upstreams {
			send(value(&now.Upstreams[i]), now.Upstreams[i].Address)
		}
	}, "upstream")
}

// count returns a gauge of the number of upstreams that satisfy is.
func count(name, help string, is func(*quality.Upstream) bool) family {
	return gauge(name, help, func(now *Live, send send) {
		n := 0
		for i := range now.Upstreams {
			if is(&now.Upstreams[i]) {
				n++
			}
		}
		send(float64(n))
	})
}

// omitIf leaves values out of a summary, such as those of a healthy upstream.
func (f family) omitIf(omit func(value float64) bool) family {
	f.omit = omit
	return f
}

func always(float64) bool { return true }

// is reports whether a value is want.
func is(want float64) func(float64) bool { return func(v float64) bool { return v == want } }

// reported returns a gauge with a value for each upstream that has sent a report.
func reported(name, help string, value func(*quality.Upstream) float64) family {
	return gauge(name, help, func(now *Live, send send) {
		for i := range now.Upstreams {
			if u := &now.Upstreams[i]; u.ReportAge >= 0 {
				send(value(u), u.Address)
			}
		}
	}, "upstream")
}
