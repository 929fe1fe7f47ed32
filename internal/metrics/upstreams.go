package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
)

// upstreams holds the counters of each upstream. The series of an upstream exist
// from Joined to Left; events before and after are ignored.
//
// Every ending job takes the mutex. Thousands of upstreams can join or leave at once, so their series are created and
// deleted without the mutex.
type upstreams struct {
	join    func(address string) *upstream // creates the series of an upstream
	leave   func(address string)           // deletes the series of an upstream
	reports *prometheus.CounterVec         // failed polls
	events  *prometheus.CounterVec         // events of KV caches
	hints   *prometheus.CounterVec         // invalid load headers
	count   func(address string, o pool.Outcome) prometheus.Counter

	mu         sync.Mutex
	byUpstream map[string]*upstream
	advised    bool // Joined returns true only while this is false
}

// upstream is the series of one upstream.
type upstream struct {
	attempts               [pool.Outcomes]prometheus.Counter // nil until the first attempt with that outcome, in a summary
	firstByte, wait, fetch prometheus.Observer               // nil in a summary
}

// Results of events.
const used, ignored = "used", "ignored"

func newUpstreams(r registrar, summary bool) *upstreams {
	reports := r.counters("pilotfish_report_failures_total",
		"Failed polls of the upstream's report: no response, or an unreadable one.", "upstream")
	attempts := r.counters("pilotfish_upstream_attempts_total",
		"Attempts at the upstream by outcome.", "upstream", "outcome")
	firstByte := r.histograms("pilotfish_upstream_first_byte_seconds",
		"Time from the start of an attempt to the first byte of its response.", firstByteSeconds, "upstream")
	wait := r.summaries("pilotfish_upstream_wait_seconds",
		"Queue time of jobs at the upstream, as reported by the upstream.", "upstream")
	fetch := r.summaries("pilotfish_upstream_fetch_seconds",
		"Time that jobs spent fetching data at the upstream, as reported by the upstream, of jobs that caused a fetch.", "upstream")
	count := func(a string, o pool.Outcome) prometheus.Counter { return attempts.WithLabelValues(a, o.String()) }
	events := r.counters("pilotfish_cache_events_total",
		"Events of the upstream's KV cache. Nothing was learned from the ignored ones.", "upstream", "result")
	hints := r.counters("pilotfish_load_headers_invalid_total",
		"Responses of the upstream with an invalid load header (X-Load or ORCA), which is ignored; absent before the first.", "upstream")
	return &upstreams{
		reports: reports, events: events, hints: hints,
		join: func(a string) *upstream {
			u := &upstream{}
			reports.WithLabelValues(a) // these two start at 0, so that their rates are not unknown
			u.attempts[pool.Answered] = count(a, pool.Answered)
			if summary {
				return u
			}
			for o := range u.attempts {
				u.attempts[o] = count(a, pool.Outcome(o))
			}
			u.firstByte, u.wait, u.fetch = firstByte.WithLabelValues(a), wait.WithLabelValues(a), fetch.WithLabelValues(a)
			return u
		},
		count: count,
		leave: func(a string) { // delete by exact labels: a partial match would scan all series
			for _, v := range []interface{ DeleteLabelValues(...string) bool }{reports, firstByte, wait, fetch, hints} {
				v.DeleteLabelValues(a)
			}
			for o := range pool.Outcome(pool.Outcomes) {
				attempts.DeleteLabelValues(a, o.String())
			}
			events.DeleteLabelValues(a, used)
			events.DeleteLabelValues(a, ignored)
		},
		byUpstream: make(map[string]*upstream),
		advised:    summary,
	}
}

// manyUpstreams is the number of upstreams up to which a scrape with all their series takes less than 0.1 s of CPU time.
const manyUpstreams = 1000

// Joined adds the series of upstreams that joined. many is true when there are more than manyUpstreams for the first time, unless
// Settings.Upstreams is summary, which is recommended then.
func (u *upstreams) Joined(addresses []string) (many bool) {
	for _, a := range addresses {
		series := u.join(a)
		u.mu.Lock()
		u.byUpstream[a] = series
		if len(u.byUpstream) > manyUpstreams && !u.advised {
			u.advised, many = true, true
		}
		u.mu.Unlock()
	}
	return many
}

// Left deletes the series of upstreams that left.
func (u *upstreams) Left(addresses []string) {
	for _, a := range addresses {
		u.mu.Lock()
		delete(u.byUpstream, a)
		u.mu.Unlock()
		u.leave(a)
	}
}

// ReportFailed counts a failed poll. It ignores upstreams that are not in the pool,
// because the last poll of an upstream can end after its removal.
func (u *upstreams) ReportFailed(address string) {
	u.increment(address, func() prometheus.Counter { return u.reports.WithLabelValues(address) })
}

// HintInvalid counts a response with an invalid load header.
func (u *upstreams) HintInvalid(address string) {
	u.increment(address, func() prometheus.Counter { return u.hints.WithLabelValues(address) })
}

// CacheEvent counts an event of an upstream's cache. learned is false if nothing was learned from it.
func (u *upstreams) CacheEvent(address string, learned bool) {
	result := ignored
	if learned {
		result = used
	}
	u.increment(address, func() prometheus.Counter { return u.events.WithLabelValues(address, result) })
}

// increment increments a counter of an upstream, unless it is not in the pool.
func (u *upstreams) increment(address string, get func() prometheus.Counter) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if c := u.series(address, get); c != nil {
		c.Inc()
	}
}

// series returns a counter of an upstream, or nil if it is not in the pool. A scrape can delay get, so it is called without the
// mutex, which must be held.
func (u *upstreams) series(address string, get func() prometheus.Counter) (c prometheus.Counter) {
	if u.byUpstream[address] == nil {
		return nil
	}
	u.mu.Unlock()
	c = get()
	u.mu.Lock()
	if u.byUpstream[address] == nil { // it has left in between
		u.mu.Unlock()
		u.leave(address)
		u.mu.Lock()
		return nil
	}
	return c
}

// attempted adds an attempt to the counters of its upstream.
func (u *upstreams) attempted(a *record.Attempt) {
	u.mu.Lock()
	defer u.mu.Unlock()
	s, ok := u.byUpstream[a.Upstream]
	if !ok {
		return
	}
	if s.attempts[a.Outcome] == nil {
		c := u.series(a.Upstream, func() prometheus.Counter { return u.count(a.Upstream, a.Outcome) })
		if c == nil {
			return
		}
		s.attempts[a.Outcome] = c
	}
	s.attempts[a.Outcome].Inc()
	if s.firstByte == nil {
		return
	}
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
