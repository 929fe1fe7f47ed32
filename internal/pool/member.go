package pool

import (
	"cmp"
	"fmt"
	"time"

	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/pkg/selection"
)

// How long what an upstream said of itself counts, in intervals between two
// reports. Load outlives two polls in a row that fail. A cache listing outlives
// it, because data does not leave a cache as fast as load changes.
const (
	loadIntervals    = 3
	ListingIntervals = 4 * loadIntervals
)

// member is one upstream and all that is known of it. It lives while it is in
// the set or has open assignments, and for as long after that as its breaker is remembered.
type member struct {
	Upstream
	id      uint64
	inSet   bool
	entered time.Time // when it came into the set
	left    time.Time // when it left the set

	health    health
	suspicion suspicion
	drained   bool // by hand
	detector  overload.Detector
	level     overload.Level

	waiting       map[*waiting]struct{} // jobs that may be moved
	load          estimate
	unread        unread
	unanswered    unanswered
	polled        time.Time // when the last report was taken, hints aside
	reportedCores int       // 0 is unknown
	coresBusy     float64   // negative is unknown

	cached CacheSet // nil is unknown
	listed time.Time
	// assumed are the parts sent here that no listing names yet, by the millisecond of the claim. Where no
	// listing ever confirms or refutes them, the earliest are forgotten.
	assumed *generations[int64]
	life    life

	believed plausibility
	rate     rate
	latency  peakEWMA
	slowness slowness
}

func newMember(u Upstream, cfg *Config) *member {
	m := &member{
		Upstream: u,
		id:       selection.UpstreamID(u.Address),
		waiting:  map[*waiting]struct{}{},
	}
	m.health.renew(cfg)
	return m
}

// forget drops what a restarted upstream no longer is: its report, cache and pace. Its
// breaker stays: an upstream that keeps failing is not forgiven for registering again.
func (m *member) forget(cfg *Config) {
	m.load.reset()
	m.unanswered.forget()
	m.suspicion, m.health.others = suspicion{}, others{}
	m.polled, m.reportedCores = time.Time{}, 0
	m.cached, m.listed = nil, time.Time{}
	m.assumed, m.life = newGenerations[int64](maxParts), 0
	m.detector, m.level = cfg.Detector(), 1
	m.believed = plausibility{}
	m.rate, m.latency, m.slowness = rate{}, peakEWMA{}, slowness{}
	m.drained = false
}

// leaves is why an upstream takes no new jobs whatever its health, unless all drain; Eligible if it does.
func (m *member) leaves() Reason {
	switch {
	case m.drained:
		return Drained
	case m.Draining:
		return Drains
	}
	return Eligible
}

// fresh reports whether the last report is recent enough to choose by. Without
// it, own counts serve.
func (m *member) fresh(now time.Time, cfg *Config) bool {
	return !m.unanswered.doubted && m.load.fresh(now, loadIntervals*cfg.Interval)
}

// cores is how many joblets run here at once.
func (m *member) cores() float64 {
	return cmp.Or(float64(m.believed.cores), m.load.cores(), unheardCores)
}

// toldCores is what the upstream reports, or else what discovery says; 0 is unknown.
func (m *member) toldCores() int { return cmp.Or(m.reportedCores, m.Cores) }

// lists reports whether a listing is recent enough to choose by.
func (m *member) lists(now time.Time, cfg *Config) bool {
	return m.cached != nil && now.Sub(m.listed) <= ListingIntervals*cfg.Interval
}

// has says what is known of a part here, by the listing if that counts.
func (m *member) has(part uint64, listed bool, now time.Time) selection.Cache {
	if listed && m.cached.Contains(part) {
		return selection.Cached
	}
	if used, ok := m.assumed.get(part); ok && m.keeps(since(now, used)) {
		return selection.AssumedCached
	}
	return selection.NotCached
}

// wrong says what is not believed of an upstream; "" is nothing.
func (m *member) wrong() string {
	wrong := m.believed.report
	also := func(format string, values ...any) {
		if wrong != "" {
			wrong += ", "
		}
		wrong += fmt.Sprintf(format, values...)
	}
	if m.unanswered.doubted {
		also("fewer than half of the jobs that this sidecar has there")
	}
	if m.believed.listing != "" {
		also("%s", m.believed.listing)
	}
	if m.believed.tooManyCores {
		also("%d cores, more than %d times as many as others", m.toldCores(), maxTimes)
	} else if m.believed.tooFast {
		also("%.3g jobs per second and core, far more than others", m.rate.perCore())
	}
	return wrong
}
