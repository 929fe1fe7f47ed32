package pool

import (
	"slices"
	"time"

	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/internal/prompts"
)

// Report records a report of an upstream. It ignores a report that is not newer than the last one, from an upstream
// that has left, or from before it joined again or restarted. Impossible figures count as unknown. If a load hint is
// newer, its load stays, and only the rest of the report is used.
func (p *Pool) Report(now time.Time, address string, r Report) {
	m, ok := p.members[address]
	if !ok || !m.inSet || !r.At.After(m.suspicion.LastReport()) || r.At.Before(m.again) {
		return
	}
	f := &m.figures
	r, known, wrong := r.sanitize()
	f.absurd = wrong
	p.watch.Reported(r.At, &m.suspicion)
	if !r.At.Before(m.breaker.Down()) { // an earlier report does not show that the upstream is up again
		m.breaker.Reached(now)
	}
	m.breaker.Reported(now, r.Completed, r.Failed)
	if known || r.CoresBusy >= 0 {
		f.observeRate(r)
	}
	f.cores, f.busy = r.Cores, r.CoresBusy
	if r.Cached != nil {
		p.storeListing(m, r.At, r.Cached)
	}
	if known {
		running, stalled := sum(r.Running), sum(r.Stalled)
		m.load.level = m.load.detector(overload.Sample{Stalled: stalled, Wait: r.Wait})
		m.updateDoubts(r.At, running+stalled, p.watch.Claims(), p.cfg.Interval)
		m.cached.prompts.Report(p.prompts, prompts.Report{
			At: r.At, Running: running, Waiting: stalled, Started: r.Begun, Completed: r.Completed, Read: r.Read,
		})
		if !m.load.at.After(r.At) {
			m.load.adopt(r.At, running, stalled, stalledHigh(r.Stalled, r.ByPriority), r.CoresBusy)
			p.markReported(m)
		}
	}
	if p.norms.uncompared++; p.norms.uncompared*comparedTogether >= len(p.set) {
		p.updateNorms()
	}
}

// ReportFailed records that an upstream's report could not be fetched or read.
func (p *Pool) ReportFailed(now time.Time, address string, why error) {
	if m, ok := p.members[address]; ok && m.inSet {
		p.watch.ReportFailed(now, &m.suspicion, why, p.cfg.Interval)
	}
}

// Checked records a health check of an upstream: why it failed, or nil.
func (p *Pool) Checked(now time.Time, address string, why error) {
	if m, ok := p.members[address]; ok && m.inSet {
		m.breaker.Checked(now, p.cfg.Interval, why)
		p.watch.Checked(now, &m.suspicion, why)
	}
}

// Listing records a cache listing that was fetched separately from the report; at is the instant that it describes. It
// ignores a listing that is not newer than the last one, and a listing that Report would ignore.
func (p *Pool) Listing(at time.Time, address string, listing CacheSet) {
	if m, ok := p.members[address]; ok && m.inSet && at.After(m.cached.at) && !at.Before(m.again) {
		p.storeListing(m, at, listing)
	}
}

// storeListing stores a cache listing, unless it is too long to be credible.
func (p *Pool) storeListing(m *member, at time.Time, listing CacheSet) {
	if n := listing.Len(); n > manyListed {
		most := 0
		for _, other := range p.set {
			if other != m {
				most = max(most, other.cached.len())
			}
		}
		if m.cached.tooLong = listingFault(n, most); m.cached.tooLong != "" {
			return
		}
	}
	m.cached.replace(at, listing, func(project uint64) float64 {
		return p.fetches.expected(p.projects.find(project).size())
	})
}

// applyHint records the load in a response: a partial report, newer than the last poll. It is used only if the upstream
// has reported before, or has not reported for loadIntervals since it joined.
func (p *Pool) applyHint(now time.Time, m *member, h *Hint) {
	alone := now.Sub(m.since) > loadIntervals*p.cfg.Interval
	if m.load.at.IsZero() && !alone || !h.At.After(m.load.at) {
		return
	}
	if running, stalled, ok := h.counts(&m.load.estimate, m.cores(&p.norms)); ok {
		m.load.adopt(h.At, running, stalled, stalledHigh(h.Stalled, h.ByPriority), h.CoresBusy)
		p.markReported(m)
	}
}

// compareTimes compares a time to first byte at m, without the wait for a core, with the usual one of its project, to
// find slow upstreams.
func (p *Pool) compareTimes(m *member, usual *average, took time.Duration) {
	m.slowness.observe(took, usual)
	n := &p.norms
	if n.untimed++; n.untimed*comparedTogether >= len(p.set) {
		n.untimed, n.slownesses = 0, n.slownesses[:0]
		for _, other := range p.set {
			if other.slowness.responses >= enoughResponses {
				n.slownesses = append(n.slownesses, other.slowness.logRatio)
			}
		}
		slices.Sort(n.slownesses)
	}
	m.slowness.judge(n.slownesses)
}

// CacheChanged records changes of an upstream's cache of prompts, from its cache events.
func (p *Pool) CacheChanged(now time.Time, address string, changes []prompts.Change) {
	if m, ok := p.members[address]; ok && m.inSet {
		for _, c := range changes {
			m.cached.prompts.Apply(now, c)
		}
	}
}
