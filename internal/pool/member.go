package pool

import (
	"cmp"
	"time"

	"example.org/pilotfish/internal/breaker"
	"example.org/pilotfish/pkg/overload"
	"example.org/pilotfish/pkg/selection"
)

// member is one upstream and all that is known of it. It lives while it is in
// the set or has open assignments.
type member struct {
	Upstream
	id    uint64
	inSet bool
	// entered is when it came into the set; joined is the same, but zero for those of
	// the first set, which may have been up for long.
	entered, joined time.Time
	up              time.Time // when it came up, as far as is known; zero is unknown

	gate      gate
	drained   bool      // by hand
	held      time.Time // it gets no job before that, because it refused one for load
	suspicion suspicion
	failing   failing
	detector  overload.Detector
	level     overload.Level

	waiters       waiters
	tellsBegun    bool // it tells when a job has begun: the last answer came after such a sign
	load          estimate
	ledger        ledger
	cold          int       // open assignments that may cause a fetch
	polled        time.Time // when the last report was taken, hints aside
	reportedCores int       // 0 is unknown
	coresBusy     float64   // negative is unknown

	cached  CacheSet // nil is unknown
	listed  time.Time
	changed uint64 // Pool.listings when it got another listing, or another place in the set
	// listing judges the cache listings.
	listing listing
	// assumed are the projects sent here that no listing names yet, by the
	// time of the claim.
	assumed *generations[time.Time]

	told        struct{ cores, pace float64 } // what the comparison holds; 0 is unknown
	believed    plausibility
	rate        rate
	latency     peakEWMA
	fetchFactor float64
}

// maxAssumed bounds the projects assumed cached at one upstream. Where no
// listing ever confirms or refutes them, the earliest are forgotten.
const maxAssumed = 10_000

func newMember(u Upstream, g gate, cfg *Config) *member {
	return &member{
		Upstream:    u,
		id:          selection.UpstreamID(u.Address),
		gate:        g,
		detector:    cfg.Detector(),
		level:       1,
		assumed:     newGenerations[time.Time](maxAssumed),
		fetchFactor: 1,
	}
}

// forget drops what a restarted upstream no longer is: its report, cache and pace.
func (m *member) forget(cfg *Config) {
	m.load.reset()
	m.ledger.forget()
	m.suspicion, m.failing = suspicion{}, failing{}
	m.polled, m.reportedCores = time.Time{}, 0
	m.cached, m.listed, m.listing = nil, time.Time{}, listing{}
	m.assumed = newGenerations[time.Time](maxAssumed)
	m.detector, m.level = cfg.Detector(), 1
	m.believed = plausibility{}
	m.rate, m.latency = rate{}, peakEWMA{}
	m.drained, m.tellsBegun = false, false
}

// entrance is a job at the breaker of its upstream. The breaker may be another one when
// the job ends, since the upstream may have left and come back.
type entrance struct {
	gate  gate // nil if the breaker refused the job: then nobody is told how it went
	entry breaker.Entry
}

// enter asks the breaker to let a job through.
func (m *member) enter(now time.Time) (e entrance, ok bool) {
	if e.entry, ok = m.gate.Enter(now); ok {
		e.gate = m.gate
	}
	return e, ok
}

// tell tells the breaker how the job went.
func (e *entrance) tell(now time.Time, v breaker.Verdict) {
	if e.gate != nil {
		e.gate.Tell(now, &e.entry, v)
	}
}

// drains reports whether it gets no new jobs unless all drain.
func (m *member) drains() bool { return m.Draining || m.drained }

// fresh reports whether the last report is recent enough to choose by. Without
// it, own counts serve.
func (m *member) fresh(now time.Time, cfg *Config) bool {
	return !m.ledger.doubted && m.load.fresh(now, loadIntervals*cfg.Interval)
}

// cores is how many joblets run here at once.
func (m *member) cores(cfg *Config) float64 {
	return float64(cmp.Or(m.believed.cores, cfg.Cores))
}

// names reports whether the last listing names the project.
func (m *member) names(project uint64) bool { return m.cached != nil && m.cached.Contains(project) }

// recent reports whether the last listing is not too old.
func (m *member) recent(now time.Time, cfg *Config) bool {
	return now.Sub(m.listed) <= ListingIntervals*cfg.Interval
}

// cache says what is known of project's data here.
func (m *member) cache(project uint64, now time.Time, cfg *Config) selection.Cache {
	return m.cacheOf(project, m.names(project) && m.recent(now, cfg))
}

// cacheOf is cache where it is known whether the project is listed.
func (m *member) cacheOf(project uint64, listed bool) selection.Cache {
	if project == 0 {
		return selection.NotCached
	}
	if listed && !m.listing.doubted {
		return selection.Cached
	}
	if _, ok := m.assumed.get(project); ok {
		return selection.AssumedCached
	}
	return selection.NotCached
}
