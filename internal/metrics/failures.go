package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// failures counts reports that failed, by upstream. The series of an upstream
// exist from Joined to Left; events before and after are ignored.
type failures struct {
	reports *prometheus.CounterVec

	mu       sync.Mutex
	upstream map[string]prometheus.Counter
}

func newFailures(r registrar) *failures {
	return &failures{
		reports: r.counters("pilotfish_report_failures_total",
			"Reports that could not be fetched or read.", "upstream"),
		upstream: make(map[string]prometheus.Counter),
	}
}

// Joined adds the series of upstreams that joined.
func (f *failures) Joined(addresses []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range addresses {
		f.upstream[a] = f.reports.WithLabelValues(a)
	}
}

// Left deletes the series of upstreams that left.
func (f *failures) Left(addresses []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range addresses {
		delete(f.upstream, a)
		f.reports.DeleteLabelValues(a)
	}
}

// ReportFailed counts a report that failed. It ignores upstreams that are not in
// the pool: the last poll of an upstream may end after the upstream left.
func (f *failures) ReportFailed(address string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c, ok := f.upstream[address]; ok {
		c.Inc()
	}
}
