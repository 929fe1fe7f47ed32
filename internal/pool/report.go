package pool

import (
	"math"
	"time"

	"example.org/pilotfish/pkg/overload"
	"example.org/pilotfish/pkg/selection"
)

// Report takes what an upstream says of itself into account. A report that is
// not newer than the one before, or from an upstream that has left, is dropped.
// Figures that cannot be true count as unknown.
// Where a hint on a response is newer, its load stands, and the rest of the
// report counts.
func (p *Pool) Report(now time.Time, address string, r Report) {
	m, ok := p.members[address]
	if !ok || !m.inSet || !r.At.After(m.polled) {
		return
	}
	m.polled = r.At
	r, known, wrong := r.sane()
	m.believed.report = wrong
	m.clear(now)
	m.suspicion.failed, m.suspicion.dead = 0, false
	if known || r.CoresBusy >= 0 {
		m.observeRate(r)
	}
	if known {
		m.level = m.detector.Observe(overload.Sample{Stalled: sum(r.Stalled), Wait: r.Wait, Response: r.Response})
	}
	m.reportedCores, m.coresBusy = r.Cores, r.CoresBusy
	if r.Cached != nil {
		m.list(r.At, r.Cached, p.fetchTime)
	}
	if known && !m.load.at.After(r.At) {
		m.load.adopt(r.At, sum(r.Running), sum(r.Stalled))
	}
	p.tells(m)
	p.compare()
}

// Listing takes the cache of an upstream, as it was at an instant, into
// account, where it does not come with a report. One that is not newer than
// the one before, or from an upstream that has left, is dropped.
func (p *Pool) Listing(at time.Time, address string, cached CacheSet) {
	if m, ok := p.members[address]; ok && m.inSet && at.After(m.listed) {
		m.list(at, cached, p.fetchTime)
	}
}

// list takes a cache listing, and drops the assumptions that it confirms. It
// drops as well those that it refutes: a project that it does not name although
// it was made two fetch times after the claim.
func (m *member) list(at time.Time, cached CacheSet, fetchTime func(project uint64) float64) {
	m.cached, m.listed = cached, at
	m.assumed.dropFunc(func(project uint64, claimed time.Time) bool {
		return cached.Contains(project) || at.Sub(claimed) > seconds(2*fetchTime(project))
	})
}

// hint takes the load on a response into account: a report that says less, and
// is newer than the last poll.
func (m *member) hint(h *Hint) {
	if m.load.reported && saneLoad(h.Running) && saneLoad(h.Stalled) && h.At.After(m.load.at) {
		m.load.adopt(h.At, sum(h.Running), sum(h.Stalled))
	}
}

// observeRate compares the counters of two reports.
func (m *member) observeRate(r Report) {
	if r.Completed < 0 {
		return
	}
	busy := r.CoresBusy
	if busy < 0 {
		busy = sum(r.Running)
		if r.Cores > 0 {
			busy = math.Min(busy, float64(r.Cores))
		}
	}
	m.rate.observe(r.At, r.Completed, busy)
}

func sum(byPriority [selection.Priorities]float64) float64 {
	return byPriority[selection.Low] + byPriority[selection.High]
}
