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
	m.polled, p.heard = r.At, true
	r, known, wrong := r.sane()
	m.believed.report = wrong
	m.clear(now)
	m.suspicion.failed, m.suspicion.dead = 0, false
	m.hearFailures(now, r)
	if known || r.CoresBusy >= 0 {
		m.observeRate(r)
	}
	if known {
		m.level = m.detector.Observe(overload.Sample{Stalled: sum(r.Stalled), Wait: r.Wait, Response: r.Response})
	}
	m.reportedCores, m.coresBusy = r.Cores, r.CoresBusy
	if r.Cached != nil {
		p.list(m, r.At, r.Cached)
	}
	if known {
		m.ledger.compare(r.At, sum(r.Running)+sum(r.Stalled), p.cfg.Interval/2)
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
		p.list(m, at, cached)
	}
}

// list takes a cache listing, and drops the assumptions that it confirms. It
// drops as well those that it refutes: a project that it does not name although
// it was made two fetch times after the claim.
// One that cannot be true is not taken. One that was wrong before confirms nothing.
func (p *Pool) list(m *member, at time.Time, cached CacheSet) {
	if m.listing.tooLong = p.tooLong(m, cached); m.listing.tooLong != "" {
		return
	}
	m.cached, m.listed = cached, at
	p.listings++
	m.changed = p.listings
	m.assumed.dropFunc(func(project uint64, claimed time.Time) bool {
		if cached.Contains(project) {
			return !m.listing.doubted
		}
		return at.Sub(claimed) > seconds(2*p.fetchTime(project))
	})
}

// hint takes the load on a response into account: a report that says less, and
// is newer than the last poll. Where polls bring no report, hints count alone.
func (m *member) hint(now time.Time, h *Hint, cfg *Config) {
	alone := now.Sub(m.entered) > loadIntervals*cfg.Interval
	if !m.load.reported && !alone || !h.At.After(m.load.at) {
		return
	}
	if running, stalled, ok := m.counts(h, cfg); ok {
		m.load.adopt(h.At, running, stalled)
	}
}

// counts are the counts of a hint. What it does not tell follows from the
// utilization, or else stays as the last report has it.
func (m *member) counts(h *Hint, cfg *Config) (running, stalled float64, ok bool) {
	running, stalled = sum(h.Running), sum(h.Stalled)
	cores := m.cores(cfg)
	all := h.Utilization * cores
	switch {
	case running >= 0 && stalled >= 0:
	case running < 0 && stalled < 0 && all < 0:
		return 0, 0, false
	case running < 0 && stalled < 0:
		running, stalled = min(all, cores), max(all-cores, 0)
	case running < 0 && all < 0:
		running = m.load.running
	case running < 0:
		running = max(all-stalled, 0)
	case stalled < 0 && all < 0:
		stalled = m.load.stalled
	case stalled < 0:
		stalled = max(all-running, 0)
	}
	return running, stalled, saneLoad([selection.Priorities]float64{running, stalled})
}

// observeRate compares the counters of two reports. Jobs that failed do not count:
// who fails at once is not quick.
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
	m.rate.observe(r.At, r.Completed-max(0, r.Failed), busy)
}

func sum(byPriority [selection.Priorities]float64) float64 {
	return byPriority[selection.Low] + byPriority[selection.High]
}
