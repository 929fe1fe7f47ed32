package pool

import (
	"math"
	"time"

	"example.org/pilotfish/pkg/overload"
	"example.org/pilotfish/pkg/selection"
)

// member is one upstream and all that is known of it. It lives while it is in
// the set or has open assignments.
type member struct {
	Upstream
	id       uint64
	gate     gate
	detector overload.Detector
	level    overload.Level

	inSet  bool
	joined time.Time // zero for those of the first set: they may have been up for long
	up     time.Time // when it came up, as far as is known; zero is unknown

	report   Report // the last, with the load of a hint where that is fresher
	reported bool
	polled   time.Time // when the last report was taken, hints aside
	listed   time.Time // when the last cache listing was
	rate     rate

	open     assignments // by claim time, oldest first
	inFlight int
	cold     int // open assignments that may cause a fetch
	ends     ends
	assigned int // claims since the report was taken
	// What the report does not know yet: claims it has not seen, and ends of those it has.
	begun, ended int

	// assumed are the projects sent here that no listing names yet, by the
	// time of the claim.
	assumed     *generations[time.Time]
	held        time.Time // until when it gets no job, for it refused one for load
	latency     peakEWMA
	fetchFactor float64
}

// maxAssumed bounds the projects assumed cached at one upstream: where no
// listing ever settles them, the earliest are forgotten.
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
	m.report, m.reported = Report{}, false
	m.polled, m.listed = time.Time{}, time.Time{}
	m.rate = rate{}
	m.assumed = newGenerations[time.Time](maxAssumed)
	m.detector, m.level = cfg.Detector(), 1
	m.begun, m.ended = 0, 0
	m.latency = peakEWMA{}
}

// fresh reports whether the last report is recent enough to choose by. Without
// it, own counts serve.
func (m *member) fresh(now time.Time, cfg *Config) bool {
	return m.reported && now.Sub(m.report.At) <= loadIntervals*cfg.Interval
}

// trusted reports whether the last cache listing still counts.
func (m *member) trusted(now time.Time, cfg *Config) bool {
	return now.Sub(m.listed) <= ListingIntervals*cfg.Interval
}

// cores is how many joblets run here at once.
func (m *member) cores(cfg *Config) float64 {
	switch {
	case m.report.Cores > 0:
		return float64(m.report.Cores)
	case m.Cores > 0:
		return float64(m.Cores)
	}
	return float64(cfg.Cores)
}

// present estimates the jobs that are here now: what was reported, plus claims
// the report has not seen, less ends it has not seen, and never less than this
// sidecar's own.
func (m *member) present(fresh bool) float64 {
	own := float64(m.inFlight)
	if !fresh {
		return own
	}
	return max(own, sum(m.report.Running)+sum(m.report.Stalled)+float64(m.begun-m.ended))
}

func sum(byPriority [selection.Priorities]float64) float64 {
	return byPriority[selection.Low] + byPriority[selection.High]
}

// cache says what is known of project's data here.
func (m *member) cache(project uint64, now time.Time, cfg *Config) selection.Cache {
	if project == 0 {
		return selection.NotCached
	}
	if m.report.Cached != nil && m.report.Cached.Contains(project) && m.trusted(now, cfg) {
		return selection.Cached
	}
	if _, ok := m.assumed.get(project); ok {
		return selection.AssumedCached
	}
	return selection.NotCached
}

// settle drops assumptions that the last listing confirms, or refutes by not
// naming the project although it was taken two fetch times after the claim.
func (m *member) settle(f *durations) {
	m.assumed.dropFunc(func(project uint64, claimed time.Time) bool {
		grace := seconds(2 * f.expected(project))
		return m.report.Cached.Contains(project) || m.listed.Sub(claimed) > grace
	})
}

// peakEWMA is a moving average that jumps up to a peak at once and comes
// down with a half-life of ten seconds.
type peakEWMA struct {
	value float64
	at    time.Time
}

func (e *peakEWMA) observe(now time.Time, v float64) {
	fade := math.Exp2(-now.Sub(e.at).Seconds() / 10)
	e.at = now
	e.value = math.Max(v, e.value*fade+v*(1-fade))
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
