package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
)

// upstreams counts what happened at each upstream. The series of an upstream
// exist from Joined to Left; events before and after are ignored.
type upstreams struct {
	join       func(address string) *upstream
	vectors    []interface{ DeletePartialMatch(prometheus.Labels) int }
	mu         sync.Mutex
	byUpstream map[string]*upstream
}

// upstream is the series of one upstream.
type upstream struct {
	reports                prometheus.Counter
	attempts               []prometheus.Counter // by pool.Outcome
	firstByte, wait, fetch prometheus.Observer
}

func newUpstreams(r registrar) *upstreams {
	reports := r.counters("pilotfish_report_failures_total",
		"Reports that could not be fetched or read.", "upstream")
	attempts := r.counters("pilotfish_upstream_attempts_total",
		"Attempts at the upstream by how they ended.", "upstream", "outcome")
	firstByte := r.histograms("pilotfish_upstream_first_byte_seconds",
		"From the start of an attempt to the first byte of its response.", firstByteSeconds, "upstream")
	wait := r.summaries("pilotfish_upstream_wait_seconds",
		"Time that jobs waited at the upstream, as it tells.", "upstream")
	fetch := r.summaries("pilotfish_upstream_fetch_seconds",
		"Time that jobs fetched data at the upstream, as it tells, of those that caused a fetch.", "upstream")
	return &upstreams{
		join: func(a string) *upstream {
			return &upstream{
				reports: reports.WithLabelValues(a), attempts: byLabel[pool.Outcome](pool.Outcomes, attempts.WithLabelValues, a),
				firstByte: firstByte.WithLabelValues(a), wait: wait.WithLabelValues(a), fetch: fetch.WithLabelValues(a),
			}
		},
		vectors:    []interface{ DeletePartialMatch(prometheus.Labels) int }{reports, attempts, firstByte, wait, fetch},
		byUpstream: make(map[string]*upstream),
	}
}

// Joined adds the series of upstreams that joined.
func (u *upstreams) Joined(addresses []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, a := range addresses {
		u.byUpstream[a] = u.join(a)
	}
}

// Left deletes the series of upstreams that left.
func (u *upstreams) Left(addresses []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, a := range addresses {
		delete(u.byUpstream, a)
		for _, v := range u.vectors {
			v.DeletePartialMatch(prometheus.Labels{"upstream": a})
		}
	}
}

// ReportFailed counts a report that failed. It ignores upstreams that are not in
// the pool: the last poll of an upstream may end after the upstream left.
func (u *upstreams) ReportFailed(address string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if s, ok := u.byUpstream[address]; ok {
		s.reports.Inc()
	}
}

// attempted counts an attempt at its upstream.
func (u *upstreams) attempted(a *record.Attempt) {
	u.mu.Lock()
	defer u.mu.Unlock()
	s, ok := u.byUpstream[a.Upstream]
	if !ok {
		return
	}
	s.attempts[a.Outcome].Inc()
	if a.FirstByte >= 0 {
		s.firstByte.Observe(a.FirstByte.Seconds())
	}
	if a.Hint == nil {
		return
	}
	if a.Hint.Waited >= 0 {
		s.wait.Observe(a.Hint.Waited.Seconds())
	}
	if a.Hint.Fetched > 0 {
		s.fetch.Observe(a.Hint.Fetched.Seconds())
	}
}
