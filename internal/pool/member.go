package pool

import (
	"hash/fnv"
	"math"
	"time"

	"pilotfish/pkg/overload"
	"pilotfish/pkg/selection"
)

// member is one upstream and all that is known of it. It lives while it is in
// the set or has open leases.
type member struct {
	Upstream
	id       uint64
	gate     Gate
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

	open     leases // by claim time, oldest first
	inFlight [selection.Priorities]int
	cold     int // open leases that may cause a fetch
	ends     ends
	assigned int // claims since the report was taken
	// What the report does not know yet: claims it has not seen, and ends of those it has.
	begun [selection.Priorities]int
	ended [selection.Priorities]int

	assumed     *generations[assumption]
	latency     peakEWMA
	fetchFactor float64
}

// assumption is a project that was sent to an upstream whose reports do not
// list it yet.
type assumption struct {
	claimed time.Time
	fetched time.Time // when the fetch is expected to end, or ended
}

// maxAssumed bounds the projects assumed cached at one upstream: where no
// listing ever settles them, the earliest are forgotten.
const maxAssumed = 10_000

func newMember(u Upstream, cfg *Config) *member {
	h := fnv.New64a()
	_, _ = h.Write([]byte(u.Address)) // never fails
	return &member{
		Upstream:    u,
		id:          h.Sum64(),
		gate:        cfg.Gate(u.Address),
		detector:    cfg.Detector(),
		level:       1,
		assumed:     newGenerations[assumption](maxAssumed),
		fetchFactor: 1,
	}
}

// forget drops what a restarted upstream no longer is: its report, cache and pace.
func (m *member) forget(cfg *Config) {
	m.report, m.reported = Report{}, false
	m.polled, m.listed = time.Time{}, time.Time{}
	m.rate = rate{}
	m.assumed = newGenerations[assumption](maxAssumed)
	m.detector, m.level = cfg.Detector(), 1
	m.begun, m.ended = [selection.Priorities]int{}, [selection.Priorities]int{}
	m.latency = peakEWMA{}
}

// jobs is how many leases are open here.
func (m *member) jobs() int { return m.inFlight[selection.Low] + m.inFlight[selection.High] }

// fresh reports whether the last report is recent enough to choose by. Without
// it, own counts serve.
func (m *member) fresh(now time.Time, cfg *Config) bool {
	return m.reported && now.Sub(m.report.At) <= cfg.Stale
}

// trusted reports whether the last cache listing still counts: data does not
// leave a cache as fast as load changes, so it outlives the load figures. Any
// word from the upstream since then keeps it alive.
func (m *member) trusted(now time.Time, cfg *Config) bool {
	heard := m.listed
	if m.report.At.After(heard) {
		heard = m.report.At
	}
	return now.Sub(heard) <= 4*cfg.Stale
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

// present estimates the jobs of one priority that are here now: what was
// reported, plus claims the report has not seen, less ends it has not seen,
// and never less than this sidecar's own.
func (m *member) present(p selection.Priority, fresh bool) float64 {
	own := float64(m.inFlight[p])
	if !fresh {
		return own
	}
	return max(own, m.report.Running[p]+m.report.Stalled[p]+float64(m.begun[p]-m.ended[p]))
}

// cache says what is known of project's data here, and how long a fetch under
// way still lasts.
func (m *member) cache(project uint64, now time.Time, cfg *Config) (status selection.Cache, fetchLeft float64) {
	if project == 0 {
		return selection.NotCached, 0
	}
	if m.report.Cached != nil && m.report.Cached.Contains(project) && m.trusted(now, cfg) {
		return selection.Cached, 0
	}
	a, ok := m.assumed.get(project)
	if !ok {
		return selection.NotCached, 0
	}
	return selection.AssumedCached, math.Max(0, a.fetched.Sub(now).Seconds())
}

// assume notes that project's data will be here once its fetch ends.
func (m *member) assume(project uint64, now time.Time, fetch float64) {
	m.assumed.put(project, assumption{claimed: now, fetched: now.Add(seconds(fetch))})
}

// settle drops assumptions that the last listing confirms, or refutes by not
// naming the project although it was taken two fetch times after the claim.
func (m *member) settle(f *durations) {
	m.assumed.dropFunc(func(project uint64, a assumption) bool {
		grace := seconds(2 * f.expected(project))
		return m.report.Cached.Contains(project) || m.listed.Sub(a.claimed) > grace
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
