package pool

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"example.org/pilotfish/pkg/selection"
)

// The reasons why nothing could be claimed.
var (
	// ErrNoneEligible: there are upstreams to try, but none may be picked now.
	ErrNoneEligible = errors.New("no upstream is eligible")
	// ErrNotAdmitted is the ErrNoneEligible of a job that an overload level
	// refuses for its project and priority, where other jobs are admitted.
	ErrNotAdmitted = fmt.Errorf("%w for this project and priority", ErrNoneEligible)
	// ErrAllTried: the job has been to every upstream that takes new jobs.
	ErrAllTried = errors.New("every upstream has been tried")
	// ErrEmpty: the pool has no upstreams.
	ErrEmpty = errors.New("no upstreams are known")
)

// bars is why a job that has been to the upstreams in tried, and may go to those in among (nil
// is all), does not go to m whatever its health; Eligible if it may. A drain of all is ignored.
func (p *Pool) bars(m *member, among, tried []string) Reason {
	switch r := m.leaves(); {
	case among != nil && !slices.Contains(among, m.Address):
		return Elsewhere
	case r != Eligible && !p.draining:
		return r
	case slices.Contains(tried, m.Address):
		return Tried
	}
	return Eligible
}

// ails is what health and load say against giving m a job. job is nil for any job.
func (p *Pool) ails(now time.Time, m *member, job *selection.Job, count rules) Reason {
	switch {
	case count.breakers && !m.health.ready(now):
		return Shut
	case count.suspicion && m.suspicion.shuns(now, m.load.inFlight):
		return Suspect
	case m.level <= 0 && m.fresh(now, &p.cfg):
		return Overloaded
	case job != nil && !m.level.Admits(*job) && m.fresh(now, &p.cfg):
		return NotAdmitted
	case now.Before(m.health.shed):
		return Shedding
	}
	return Eligible
}

// rules says which count among the upstreams of a set that take new jobs.
func (p *Pool) rules(now time.Time, set []*member) rules {
	takers, suspects, shut := 0, 0, 0
	for _, m := range set {
		if m.leaves() != Eligible && !p.draining {
			continue
		}
		takers++
		if m.suspicion.why != "" {
			suspects++
		}
		if !m.health.ready(now) {
			shut++
		}
	}
	return rules{suspicion: 2*suspects <= takers, breakers: shut < takers || takers == 0}
}

// AllTried reports whether there are upstreams, and a job has been to all that
// take new jobs: what drains is nothing to wait for, unless all drain.
func (p *Pool) AllTried(tried []string) bool {
	return len(p.set) > 0 && !slices.ContainsFunc(p.set, func(m *member) bool { return p.bars(m, nil, tried) == Eligible })
}

// eligible finds the upstreams that a job may go to: those with the least reason against them,
// if that is one with which an upstream is asked. If not, the open times of breakers are cut to what
// they were before they grew: they spare jobs, and this one finds no other upstream.
// It fills in how long a fetch will take for the job.
//
// In a large pool it looks at the upstreams that are near the project, if those suffice.
//
// What it returns is valid until the next call.
func (p *Pool) eligible(now time.Time, job *selection.Job, n *need, among, tried []string) (*candidates, error) {
	if _, local := p.cfg.Policy.(selection.Local); local && among == nil {
		if set := p.nearby(n.project); set != nil {
			c := p.look(now, job, n, set, nil, tried)
			if c.reason == Eligible && c.count == (rules{true, true}) && slices.ContainsFunc(c.views, func(v selection.View) bool { return v.Jobs < v.Cores }) {
				job.Fetch = p.fetch(n)
				return c, nil
			}
		}
	}
	c := p.look(now, job, n, p.set, among, tried)
	if len(c.members) == 0 && p.hasten(now, c.reasons) {
		c = p.look(now, job, n, p.set, among, tried)
	}
	job.Fetch = p.fetch(n)
	switch {
	case len(c.members) > 0:
		return c, nil
	case len(p.set) == 0:
		return c, ErrEmpty
	case p.AllTried(tried):
		return c, ErrAllTried
	case c.reason == NotAdmitted:
		return c, ErrNotAdmitted
	}
	return c, ErrNoneEligible
}

// hasten cuts the open times of the upstreams of the set that are shut, by the reasons against each, and
// reports whether one is ready thereby.
func (p *Pool) hasten(now time.Time, reasons []Reason) (ready bool) {
	for i, r := range reasons {
		if h := &p.set[i].health; r == Shut {
			h.hasten()
			ready = ready || h.ready(now)
		}
	}
	return ready
}

// look goes through the upstreams of a set. That happens for every claim, so it
// asks each thing once. The candidates are empty if the least reason allows none.
func (p *Pool) look(now time.Time, job *selection.Job, n *need, set []*member, among, tried []string) *candidates {
	c := &p.memory
	*c = candidates{members: c.members[:0], views: c.views[:0], reasons: c.reasons[:0], reason: Elsewhere}
	c.count = p.rules(now, set)
	for _, m := range set {
		r := p.bars(m, among, tried)
		if r == Eligible {
			r = p.ails(now, m, job, c.count)
		}
		c.reasons = append(c.reasons, r)
		c.reason = min(c.reason, r)
	}
	if c.reason != Eligible && c.reason != Shedding && c.reason != Suspect {
		return c
	}
	for i, m := range set {
		if c.reasons[i] == c.reason {
			c.members, c.views = append(c.members, m), append(c.views, selection.View{})
			v := &c.views[len(c.views)-1]
			m.view(v, now, &p.cfg)
			m.expect(v, n, now, &p.cfg)
		}
	}
	return c
}
