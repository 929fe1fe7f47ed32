package pool

import (
	"errors"
	"fmt"
	"math"
	"time"

	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/internal/prompts"
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
	m.absurd = wrong
	m.suspicion.why, m.suspicion.failed, m.suspicion.dead = "", 0, false
	m.health.reached(now, &p.cfg)
	m.health.hear(now, r, &p.cfg)
	if known || r.CoresBusy >= 0 {
		m.observeRate(r)
	}
	m.reportedCores, m.coresBusy = r.Cores, r.CoresBusy
	if r.Cached != nil {
		p.list(m, r.At, r.Cached)
	}
	if known {
		running, stalled := sum(r.Running), sum(r.Stalled)
		m.level = m.detector(overload.Sample{Stalled: stalled, Wait: r.Wait})
		p.doubt(m, r.At, running+stalled)
		m.prompts.Report(p.prompts, prompts.Report{
			At: r.At, Running: running, Waiting: stalled, Started: r.Begun, Completed: r.Completed, Read: r.Read,
		})
		if !m.load.at.After(r.At) {
			m.load.adopt(r.At, running, stalled, stalledHigh(r.Stalled, r.ByPriority), r.CoresBusy)
		}
	}
	if p.uncompared++; p.uncompared*comparedTogether >= len(p.set) {
		p.compare()
	}
}

// doubt takes in a report of so many jobs at m. One that follows another at once proves
// nothing: the jobs may be on their way.
func (p *Pool) doubt(m *member, at time.Time, jobs float64) {
	d, older := &m.doubts, 0
	if at.Sub(d.at) < p.cfg.Interval/2 {
		return
	}
	for number := range m.unanswered {
		if number <= d.number {
			older++
		}
	}
	switch {
	case 2*jobs < float64(older):
		d.short, d.enough = d.short+1, 0
	case older > 0:
		d.short, d.enough = 0, d.enough+1
	}
	if d.short >= doubtedAfter {
		d.doubted = true
	}
	if d.enough >= doubtedAfter {
		d.doubted = false
	}
	d.at, d.number = at, p.number
}

// ReportFailed takes into account that an upstream's report could not be fetched
// or read. After two in a row it is suspect, unless an answer to a job has begun
// meanwhile. An upstream that has never reported is judged by its answers alone.
func (p *Pool) ReportFailed(now time.Time, address string, why error) {
	m, ok := p.members[address]
	if !ok || !m.inSet || m.polled.IsZero() {
		return
	}
	p.heard = true
	s := &m.suspicion
	s.dead = errors.Is(why, ErrNoResponse)
	if s.failed++; s.failed == 1 {
		s.firstFailed = now
	}
	if s.failed >= failedInARow && s.answered.Before(s.firstFailed) {
		p.suspect(now, m, fmt.Sprintf("%d reports in a row failed, and no answer began meanwhile: %v", s.failed, rootOf(why)))
		return
	}
	p.weigh(now, m)
}

// Checked takes a health check of an upstream into account; why is nil if it passed.
func (p *Pool) Checked(now time.Time, address string, why error) {
	if m, ok := p.members[address]; ok && m.inSet {
		m.health.checked(now, why, &p.cfg)
	}
}

// Listing takes the cache of an upstream, as it was at an instant, into
// account, where it does not come with a report. One that is not newer than
// the one before, or from an upstream that has left, is dropped.
func (p *Pool) Listing(at time.Time, address string, cached CacheSet) {
	if m, ok := p.members[address]; ok && m.inSet && at.After(m.listed) {
		p.list(m, at, cached)
	}
}

// list takes a cache listing, unless it is too long to be true beside those of the others, and drops the assumptions
// that it confirms. It drops as well those that it refutes: a project that it does not name although it was made two
// fetch times after the claim.
func (p *Pool) list(m *member, at time.Time, cached CacheSet) {
	if n := cached.Len(); n > manyListed && p.tooLong(m, n) {
		m.tooLong = fmt.Sprintf("%d cached projects, more than %d times as many as others", n, maxTimes)
		return
	}
	m.cached, m.listed, m.tooLong = cached, at, ""
	m.assumed.DropFunc(at, func(part uint64, since time.Duration) bool {
		return cached.Contains(part) || since > seconds(2*p.fetches.expected(p.projects.find(part).size()))
	})
}

// tooLong reports whether a listing of n projects at m is too long to be true beside those of the others.
func (p *Pool) tooLong(m *member, n int) bool {
	most := 0
	for _, other := range p.set {
		if other != m && other.cached != nil {
			most = max(most, other.cached.Len())
		}
	}
	return most > 0 && n/maxTimes > most
}

// hint takes the load on a response into account: a report that says less, and
// is newer than the last poll. Where polls bring no report, hints count alone.
func (p *Pool) hint(now time.Time, m *member, h *Hint) {
	alone := now.Sub(m.since) > loadIntervals*p.cfg.Interval
	if m.load.at.IsZero() && !alone || !h.At.After(m.load.at) {
		return
	}
	if running, stalled, ok := h.counts(&m.load, p.cores(m)); ok {
		m.load.adopt(h.At, running, stalled, stalledHigh(h.Stalled, h.ByPriority), -1)
	}
}

// stalledHigh is the number of stalled joblets with high priority; negative is unknown.
func stalledHigh(stalled [selection.Priorities]float64, byPriority bool) float64 {
	if !byPriority {
		return -1
	}
	return stalled[selection.High]
}

// counts are the counts of a hint. Where it does not tell both, they follow from the
// utilization, or else the other stays as the last report has it.
func (h *Hint) counts(last *estimate, cores float64) (running, stalled float64, ok bool) {
	running, stalled = sum(h.Running), sum(h.Stalled)
	all := h.Utilization * cores
	switch {
	case !(running < 0) && !(stalled < 0): // NaN is told, and not sane
	case all >= 0:
		running, stalled = min(all, cores), max(all-cores, 0)
	case running < 0 && stalled < 0:
		return 0, 0, false
	case running < 0:
		running = last.running
	default:
		stalled = last.stalled
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

// Changed takes what an upstream's events report of its cache of prompts.
func (p *Pool) Changed(now time.Time, address string, changes []prompts.Change) {
	if m, ok := p.members[address]; ok && m.inSet {
		for _, c := range changes {
			m.prompts.Apply(now, c)
		}
	}
}
