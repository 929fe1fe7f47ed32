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
//
// In a large pool it looks at the upstreams that are near the project, if those suffice.
//
// What it returns is valid until the next call.
func (p *Pool) eligible(
	now time.Time, priority selection.Priority, n *need, among, tried []string,
) (*candidates, error) {
	c := &p.memory
	c.need, c.job = n, selection.Job{
		Project:  n.project.id,
		Prompt:   n.text,
		Priority: priority,
		Number:   p.number,
		Hour:     uint64(now.Unix() / 3600),
		Service:  p.service,

		QueuedBehind:      p.before.mean,
		FirstPlaceHitRate: p.home.mean,
	}
	enough := false
	if _, local := p.cfg.Policy.(selection.Local); local && among == nil {
		if set := p.nearby(n.project); set != nil {
			p.look(now, c, set, nil, tried)
			free := func(v selection.View) bool { return v.Jobs-v.Coreless < v.Cores }
			enough = c.reason == Eligible && c.count == (rules{true, true}) && slices.ContainsFunc(c.views, free)
		}
	}
	if !enough {
		p.look(now, c, p.set, among, tried)
	}
	if len(c.members) == 0 && slices.Contains(c.reasons, Shut) {
		for i, r := range c.reasons {
			if r == Shut {
				p.set[i].health.hasten()
			}
		}
		p.look(now, c, p.set, among, tried)
	}
	c.job.Fetch = p.fetch(n) // after the look, as a listing may tell a size
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

// look goes through the upstreams of a set. That happens for every claim, so it
// asks each thing once. The candidates are empty if the least reason allows none.
func (p *Pool) look(now time.Time, c *candidates, set []*member, among, tried []string) {
	c.members, c.views, c.reasons, c.reason = c.members[:0], c.views[:0], c.reasons[:0], Elsewhere
	c.count = p.rules(now, set)
	for _, m := range set {
		r := p.bars(m, among, tried)
		if r == Eligible {
			r = p.ails(now, m, &c.job, c.count)
		}
		c.reasons = append(c.reasons, r)
		c.reason = min(c.reason, r)
	}
	if c.reason != Eligible && c.reason != Shedding && c.reason != Suspect {
		return
	}
	for i, m := range set {
		if c.reasons[i] == c.reason {
			c.members, c.views = append(c.members, m), append(c.views, selection.View{})
			p.view(&c.views[len(c.views)-1], now, m, c.need)
		}
	}
}

// view fills v with the load at m, by the last report if that is fresh, and with what depends on the job's data.
func (p *Pool) view(v *selection.View, now time.Time, m *member, n *need) {
	fresh := m.fresh(now, &p.cfg)
	v.ID, v.Weight, v.Cores = m.id, m.Weight, p.cores(m)
	v.InFlight = float64(m.load.inFlight)
	v.Jobs, v.Coreless = m.load.present(fresh), m.load.coreless(fresh)
	v.Assigned = m.load.assigned(fresh)
	v.PrefillWait = m.unread.left(now)
	v.Rate = v.Cores * p.pace(m)
	v.Latency = m.latency.value
	v.Fresh = fresh
	v.Cache, v.Warm, _ = p.holds(now, m, n)
	if !m.StopsAt.IsZero() {
		v.Left = max(m.StopsAt.Sub(now).Seconds(), 1e-3)
	}
}
