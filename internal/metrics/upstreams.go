package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

// upstreams counts what happened at each upstream. The series of an upstream
// exist from Joined to Left; events before and after are ignored.
type upstreams struct {
	reports    *prometheus.CounterVec
	attempts   *prometheus.CounterVec
	firstByte  *histograms
	wait       *prometheus.SummaryVec
	expected   *prometheus.SummaryVec
	fetch      *prometheus.SummaryVec
	execution  *prometheus.SummaryVec
	mu         sync.Mutex
	byUpstream map[string]*upstream
}

// upstream is the series of one upstream.
type upstream struct {
	reports   prometheus.Counter
	attempts  []prometheus.Counter // by pool.Outcome
	firstByte *histogram
	wait      prometheus.Observer
	expected  prometheus.Observer
	fetch     prometheus.Observer
	execution prometheus.Observer
}

func newUpstreams(r registrar) *upstreams {
	return &upstreams{
		reports: r.counters("pilotfish_report_failures_total",
			"Reports that could not be fetched or read.", "upstream"),
		attempts: r.counters("pilotfish_upstream_attempts_total",
			"Attempts at the upstream by how they ended.", "upstream", "outcome"),
		firstByte: r.histograms("pilotfish_upstream_first_byte_seconds",
			"From the start of an attempt to the first byte of its response.", firstByteSeconds, "upstream"),
		wait: r.summaries("pilotfish_upstream_wait_seconds",
			"Time that jobs waited at the upstream, as it tells.", "upstream"),
		expected: r.summaries("pilotfish_upstream_wait_expected_seconds",
			"What the policy weighed as the wait of the same jobs when it picked the upstream.", "upstream"),
		fetch: r.summaries("pilotfish_upstream_fetch_seconds",
			"Time that jobs fetched data at the upstream, as it tells, of those that caused a fetch.", "upstream"),
		execution: r.summaries("pilotfish_upstream_execution_seconds",
			"Time of complete responses from the start of the attempt to their end, less the wait that the upstream tells.", "upstream"),
		byUpstream: make(map[string]*upstream),
	}
}

// Joined adds the series of upstreams that joined.
func (u *upstreams) Joined(addresses []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, a := range addresses {
		u.byUpstream[a] = &upstream{
			reports:  u.reports.WithLabelValues(a),
			attempts: byLabel[pool.Outcome](pool.Outcomes, u.attempts.WithLabelValues, a),

			firstByte: u.firstByte.with(a),
			wait:      u.wait.WithLabelValues(a),
			expected:  u.expected.WithLabelValues(a),
			fetch:     u.fetch.WithLabelValues(a),
			execution: u.execution.WithLabelValues(a),
		}
	}
}

// Left deletes the series of upstreams that left.
func (u *upstreams) Left(addresses []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, a := range addresses {
		delete(u.byUpstream, a)
		u.reports.DeleteLabelValues(a)
		u.attempts.DeletePartialMatch(prometheus.Labels{"upstream": a})
		u.firstByte.remove(a)
		for _, times := range []*prometheus.SummaryVec{u.wait, u.expected, u.fetch, u.execution} {
			times.DeleteLabelValues(a)
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

// Attempt is one that ended.
type Attempt struct {
	// Upstream is where, and Outcome how.
	Upstream string
	Outcome  pool.Outcome
	// Believed is what was believed of the project's data there, and Expected what the
	// policy weighed as the wait.
	Believed selection.Cache
	Expected float64
	// FirstByte and LastByte are from its start; negative without a response, and
	// without a complete one.
	FirstByte, LastByte time.Duration
	// Hint is what the upstream told; nil when nothing.
	Hint *pool.Hint
}

// attempted counts an attempt at its upstream.
func (u *upstreams) attempted(a *Attempt) {
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
		s.expected.Observe(a.Expected)
		if a.LastByte >= a.Hint.Waited {
			s.execution.Observe((a.LastByte - a.Hint.Waited).Seconds())
		}
	}
	if a.Hint.Fetched > 0 {
		s.fetch.Observe(a.Hint.Fetched.Seconds())
	}
}
