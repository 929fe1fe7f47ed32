package pool

import (
	"cmp"
	"time"

	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/internal/prompts"
	"example.org/pilotfish/internal/recent"
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
	id    uint64
	inSet bool
	named uint64    // the number of the last set that named it
	owes  bool      // it is in Pool.owing
	since time.Time // when it came into the set, or left it

	health    health
	suspicion suspicion
	drained   bool // by hand
	detector  overload.Detector
	level     overload.Level

	unanswered    map[uint64]*Assignment // assignments whose responses have not started, by number
	awaited       map[uint64]int         // how many of them each project has
	load          estimate
	doubts        doubts
	polled        time.Time // when the last report was taken, hints aside
	reportedCores int       // 0 is unknown
	coresBusy     float64   // negative is unknown
	absurd        string    // what is wrong with the last report by itself; "" is nothing

	cached CacheSet // nil is unknown
	listed time.Time
	// tooLong is why the last listing cannot be true beside those of the others; "" is nothing.
	tooLong string
	// assumed are the projects whose jobs were sent here and that no listing names yet, by the time of the claim. Where no
	// listing ever confirms or refutes them, the earliest are forgotten.
	assumed recent.Keys
	prompts prompts.Server

	rate     rate
	latency  peakEWMA
	slowness slowness
}

func newMember(u Upstream, cfg *Config) *member {
	m := &member{
		Upstream:   u,
		id:         selection.UpstreamID(u.Address),
		unanswered: map[uint64]*Assignment{}, awaited: map[uint64]int{},
	}
	m.health.renew(cfg)
	return m
}

// forget drops what a restarted upstream no longer is: its report, cache and pace. Its
// breaker stays: an upstream that keeps failing is not forgiven for registering again.
func (m *member) forget(cfg *Config) {
	m.load.reset()
	m.doubts.short, m.doubts.enough, m.doubts.doubted = 0, 0, false
	m.suspicion, m.health.others = suspicion{}, others{}
	m.polled, m.reportedCores, m.absurd = time.Time{}, 0, ""
	m.cached, m.listed, m.tooLong = nil, time.Time{}, ""
	m.assumed = recent.Keys{}
	m.prompts.Restarted()
	m.detector, m.level = cfg.Detector(), 1
	m.rate, m.latency, m.slowness = rate{}, peakEWMA{}, slowness{}
	m.drained = false
}

// await counts an assignment whose response has not started.
func (m *member) await(a *Assignment) {
	m.unanswered[a.number] = a
	m.awaited[a.project.id]++
}

// awaitNoMore ends await.
func (m *member) awaitNoMore(a *Assignment) {
	delete(m.unanswered, a.number)
	if m.awaited[a.project.id]--; m.awaited[a.project.id] == 0 {
		delete(m.awaited, a.project.id)
	}
}

// rampUp is how long after an upstream has joined its weight grows, from leastRamp of it to all. So its projects come back
// one after another, and it does not fetch the data of all of them at once.
const (
	rampUp    = 30 * time.Second
	leastRamp = 0.1
)

// ramp is the share of its weight that an upstream has at now. Where all have joined together, all have the same.
func (m *member) ramp(now time.Time) float64 {
	return min(max(leastRamp, now.Sub(m.since).Seconds()/rampUp.Seconds()), 1)
}

// leaves is why an upstream takes no new jobs whatever its health, unless all leave; Eligible if it does.
func (m *member) leaves(now time.Time) Reason {
	switch {
	case !m.StopsAt.IsZero() && m.StopsAt.Sub(now) <= StopNotice:
		return Stopping
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
	return !m.doubts.doubted && now.Sub(m.load.at) <= loadIntervals*cfg.Interval
}

// toldCores is what the upstream reports, or else what discovery says; 0 is unknown.
func (m *member) toldCores() int { return cmp.Or(m.reportedCores, m.Cores) }

// lists reports whether a listing is recent enough to choose by.
func (m *member) lists(now time.Time, cfg *Config) bool {
	return m.cached != nil && now.Sub(m.listed) <= ListingIntervals*cfg.Interval
}

// has says what is known of a part here, by the listing if that counts.
func (m *member) has(part uint64, listed bool) selection.Cache {
	if listed && m.cached.Contains(part) {
		return selection.Cached
	}
	if m.assumed.Has(part) {
		return selection.AssumedCached
	}
	return selection.NotCached
}
