package pool

import (
	"math"
	"time"

	"example.org/pilotfish/pkg/overload"
	"example.org/pilotfish/pkg/selection"
)

// Report takes what an upstream says of itself into account. A report older
// than the one before, or from an upstream that has left, is dropped. Where a
// hint on an answer is fresher, its load stands, and the rest of the report counts.
func (p *Pool) Report(now time.Time, address string, r Report) {
	m, ok := p.members[address]
	if !ok || !m.inSet || !r.At.After(m.polled) {
		return
	}
	m.polled = r.At
	m.learnRate(r)
	m.level = m.detector.Observe(overload.Sample{
		Stalled:  sum(r.Stalled),
		Wait:     r.Wait,
		Response: r.Response,
	})
	if r.Cached != nil {
		p.list(m, r.At, r.Cached)
	}
	r.Cached = m.report.Cached
	if last := m.report; last.At.After(r.At) {
		r.At, r.Running, r.Stalled = last.At, last.Running, last.Stalled
	}
	m.adopt(r)
}

// Listing takes the cache of an upstream, as it was at an instant, into
// account, where it does not come with a report. One that is not newer than
// the one before, or from an upstream that has left, is dropped.
func (p *Pool) Listing(at time.Time, address string, cached CacheSet) {
	if m, ok := p.members[address]; ok && m.inSet && at.After(m.listed) {
		p.list(m, at, cached)
	}
}

func (p *Pool) list(m *member, at time.Time, cached CacheSet) {
	m.report.Cached, m.listed = cached, at
	m.settle(p.fetches)
}

// hint takes the load on an answer into account: a report that is fresher
// than the last poll and says less.
func (p *Pool) hint(m *member, h *Hint) {
	if !m.reported || !h.At.After(m.report.At) {
		return
	}
	r := m.report
	r.At, r.Running, r.Stalled = h.At, h.Running, h.Stalled
	m.adopt(r)
}

// adopt makes r the last report and recounts what it does not know.
func (m *member) adopt(r Report) {
	m.report, m.reported = r, true
	m.begun, m.ended = 0, 0
	for a := m.open.last; a != nil && a.claimed.After(r.At); a = a.prev {
		m.begun++
	}
	m.assigned = m.begun
	m.ends = m.ends.since(r.At)
	for _, e := range m.ends {
		if e.claimed.After(r.At) {
			m.assigned++
		} else {
			m.ended++
		}
	}
}

// learnRate compares the counters of two reports; it must see the old one.
func (m *member) learnRate(r Report) {
	if r.Completed < 0 {
		return
	}
	busy := r.CoresBusy
	if busy < 0 {
		busy = r.Running[selection.Low] + r.Running[selection.High]
		if r.Cores > 0 {
			busy = math.Min(busy, float64(r.Cores))
		}
	}
	done := r.Completed - m.rate.completed
	if m.rate.at.IsZero() || done < 0 { // the first, or it restarted
		done = 0
		m.rate.at = time.Time{}
	}
	m.rate.observe(r.At, done, (busy+m.rate.lastBusy)/2)
	m.rate.completed, m.rate.lastBusy = r.Completed, busy
}

// learn draws from an answer that began: the load, and how long the fetch took.
func (p *Pool) learn(now time.Time, a *Assignment, h *Hint) {
	project, m := a.project, a.member
	if h != nil {
		p.hint(m, h)
	}
	if project == 0 {
		return
	}
	if took, ok := p.fetchTime(now, a, h); ok {
		ratio := math.Min(math.Max(took.Seconds()/p.fetches.expected(project), 0.1), 10)
		p.fetches.observe(project, took)
		m.fetchFactor = math.Min(math.Max(m.fetchFactor*math.Pow(ratio/m.fetchFactor, 0.05), 0.5), 3)
	}
}

// fetchTime is what it cost a job to come where its project's data was not:
// how much longer its answer took to begin than the project's answers do where
// the data is cached, less the wait for a core. That is more than the fetch:
// what was computed from the data is to be computed again as well. An answer
// that began no later than others do tells nothing, and an upstream's word for
// the fetch alone is not put in its place: with such short times fetches look so
// cheap that a pool that is behind stays behind (docs/experiments.md).
// Where the upstream does not tell the wait, only jobs that found a free core count.
func (p *Pool) fetchTime(now time.Time, a *Assignment, h *Hint) (took time.Duration, ok bool) {
	ran, cold := now.Sub(a.claimed), a.cold
	switch {
	case h != nil && h.Known && h.Waited >= 0:
		ran, cold = ran-h.Waited, !h.Cached
	case !a.idle:
		return 0, false
	}
	if !cold {
		p.answers.observe(a.project, ran)
		return 0, false
	}
	took = ran - seconds(p.answers.expected(a.project))
	return took, took > 0
}
