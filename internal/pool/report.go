package pool

import (
	"slices"
	"time"

	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/internal/prompts"
)

// Report records a report of an upstream. It ignores a report that is not newer than the last one, or from an upstream that has
// left. Impossible figures count as unknown. If a hint is newer, its load stays, and the rest of the report counts.
func (p *Pool) Report(now time.Time, address string, r Report) {
	m, ok := p.members[address]
	if !ok || !m.inSet || !r.At.After(m.suspicion.LastReport()) {
		return
	}
	f := &m.figures
	r, known, wrong := r.sane()
	f.absurd = wrong
	p.watch.Reported(r.At, &m.suspicion)
	m.breaker.Reached(now)
	m.breaker.Reported(now, r.Completed, r.Failed)
	if known || r.CoresBusy >= 0 {
		f.observeRate(r)
	}
	f.cores, f.busy = r.Cores, r.CoresBusy
	if r.Cached != nil {
		p.list(m, r.At, r.Cached)
	}
	if known {
		running, stalled := sum(r.Running), sum(r.Stalled)
		m.load.level = m.load.detector(overload.Sample{Stalled: stalled, Wait: r.Wait})
		m.doubt(r.At, running+stalled, p.watch.Claims(), p.cfg.Interval)
		m.cached.prompts.Report(p.prompts, prompts.Report{
			At: r.At, Running: running, Waiting: stalled, Started: r.Begun, Completed: r.Completed, Read: r.Read,
		})
		if !m.load.at.After(r.At) {
			m.load.adopt(r.At, running, stalled, stalledHigh(r.Stalled, r.ByPriority), r.CoresBusy)
			p.note(m)
		}
	}
	if p.norms.uncompared++; p.norms.uncompared*comparedTogether >= len(p.set) {
		p.compare()
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
	}
}

// Listing records a cache listing that does not come with a report, made at an instant. It ignores a listing that is not newer
// than the last one, or from an upstream that has left.
func (p *Pool) Listing(at time.Time, address string, listing CacheSet) {
	if m, ok := p.members[address]; ok && m.inSet && at.After(m.cached.at) {
		p.list(m, at, listing)
	}
}

// list records a cache listing, unless it is too long to be believed.
func (p *Pool) list(m *member, at time.Time, listing CacheSet) {
	if n := listing.Len(); n > manyListed {
		most := 0
		for _, other := range p.set {
			if other != m {
				most = max(most, other.cached.len())
			}
		}
		if m.cached.tooLong = longListing(n, most); m.cached.tooLong != "" {
			return
		}
	}
	m.cached.replace(at, listing, func(project uint64) float64 {
		return p.fetches.expected(p.projects.find(project).size())
	})
}

// hint records the load in a response: a partial report, newer than the last poll. It counts if the upstream has reported or
// evidently does not report.
func (p *Pool) hint(now time.Time, m *member, h *Hint) {
	alone := now.Sub(m.since) > loadIntervals*p.cfg.Interval
	if m.load.at.IsZero() && !alone || !h.At.After(m.load.at) {
		return
	}
	if running, stalled, ok := h.counts(&m.load.estimate, m.cores(&p.norms)); ok {
		m.load.adopt(h.At, running, stalled, stalledHigh(h.Stalled, h.ByPriority), h.CoresBusy)
		p.note(m)
	}
}

// compareTimes compares a time to first byte at m, without the wait, with what is usual for its project.
func (p *Pool) compareTimes(m *member, usual *average, took time.Duration) {
	m.slowness.observe(took, usual)
	n := &p.norms
	if n.untimed++; n.untimed*comparedTogether >= len(p.set) {
		n.untimed, n.slownesses = 0, n.slownesses[:0]
		for _, other := range p.set {
			if other.slowness.answers >= enoughAnswers {
				n.slownesses = append(n.slownesses, other.slowness.part)
			}
		}
		slices.Sort(n.slownesses)
	}
	m.slowness.judge(n.slownesses)
}

// Changed records events of an upstream's cache of prompts.
func (p *Pool) Changed(now time.Time, address string, changes []prompts.Change) {
	if m, ok := p.members[address]; ok && m.inSet {
		for _, c := range changes {
			m.cached.prompts.Apply(now, c)
		}
	}
}
