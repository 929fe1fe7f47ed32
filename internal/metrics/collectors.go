package metrics

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

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

// histograms have classic buckets, and native ones that are 9 % wide.
func (r registrar) histograms(name, help string, bounds []float64, labels ...string) *prometheus.HistogramVec {
	return r.NewHistogramVec(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: bounds,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160,
	}, labels)
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
