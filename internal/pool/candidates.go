package pool

import (
	"math"
	"slices"
	"time"

	"example.org/pilotfish/pkg/selection"
)

// candidates are the upstreams that a job may go to, and what a policy sees of them.
type candidates struct {
	members []*member
	views   []selection.View // of the members, in their order
	listed  []bool           // of each, whether its last listing names the project

	takers            int  // upstreams that take new jobs
	shut, suspects    int  // those of them whose breaker is not ready, and those that are suspect
	overloaded        bool // one was left out for its load alone
	panicking         bool // the breakers were ignored
	admittedElsewhere bool // an overload level refuses this job, and admits others
}

// remove takes out candidate i.
func (c *candidates) remove(i int) {
	c.members = slices.Delete(c.members, i, i+1)
	c.views = slices.Delete(c.views, i, i+1)
	c.listed = slices.Delete(c.listed, i, i+1)
}

// waive says which reasons to leave an upstream out are ignored.
type waive struct {
	holds    bool // of upstreams that have just refused a job for load
	suspects bool
	breakers bool
}

// eligible finds the upstreams that a job may go to: among those asked for, not tried,
// not draining, not overloaded, not held, not suspect, breaker ready. When the breaker of every upstream is
// open they are ignored, for then the fault is more likely ours than theirs, and
// there is nobody else to ask. When every upstream drains, draining is ignored. An
// upstream that has just refused a job for load is asked only when no other is left.
// A suspect comes after those, and not while the job may wait for one that is only
// overloaded; but suspicion is ignored when it falls on more than half of the upstreams.
// It fills in how long a fetch will take for the job.
//
// In a large pool it looks at the upstreams that are near the project, if those suffice.
//
// What it returns is valid until the next call.
func (p *Pool) eligible(now time.Time, job *selection.Job, project *projectState, among, tried []string) (*candidates, error) {
	if _, local := p.cfg.Policy.(selection.Local); local && among == nil {
		if set := p.nearby(project); set != nil {
			if c := p.look(now, *job, project, set, nil, tried, waive{}); c.suffices(c.waives()) {
				job.Fetch = p.fetch(project)
				return c, nil
			}
		}
	}
	c := p.look(now, *job, project, p.set, among, tried, waive{})
	w := c.waives()
	if w != (waive{}) {
		c = p.look(now, *job, project, p.set, among, tried, w)
	}
	if len(c.members) == 0 {
		w.holds = true
		c = p.look(now, *job, project, p.set, among, tried, w)
	}
	if len(c.members) == 0 && c.suspects > 0 && !c.overloaded {
		w.suspects = true
		c = p.look(now, *job, project, p.set, among, tried, w)
	}
	c.panicking = w.breakers
	job.Fetch = p.fetch(project)
	switch {
	case len(c.members) > 0:
		return c, nil
	case len(p.set) == 0:
		return c, ErrEmpty
	case p.AllTried(tried):
		return c, ErrAllTried
	case c.admittedElsewhere:
		return c, ErrNotAdmitted
	}
	return c, ErrNoneEligible
}

// waives says which rules are waived by what was seen of all upstreams.
func (c *candidates) waives() waive {
	return waive{breakers: c.shut == c.takers, suspects: ignoresSuspicion(c.suspects, c.takers)}
}

// look goes through the upstreams of a set once. That happens for every claim, so it
// asks each thing once.
func (p *Pool) look(now time.Time, job selection.Job, project *projectState, set []*member, among, tried []string, w waive) *candidates {
	c := &p.memory
	*c = candidates{members: c.members[:0], views: slices.Grow(c.views[:0], len(set))[:len(set)], listed: c.listed[:0]}
	l := &project.listers
	l.ask(project.id, set, p.listings)
	teller := -1
	for i, m := range set {
		if m.drains() && !p.draining {
			continue
		}
		c.takers++
		if m.suspicion.why != "" {
			c.suspects++
		}
		if !m.gate.Ready(now) {
			c.shut++
			if !w.breakers {
				continue
			}
		}
		if m.shunned(now) && !w.suspects || now.Before(m.held) && !w.holds || slices.Contains(tried, m.Address) ||
			among != nil && !slices.Contains(among, m.Address) {
			continue
		}
		fresh := m.fresh(now, &p.cfg)
		if fresh && !m.level.Admits(job) {
			c.overloaded = true
			c.admittedElsewhere = c.admittedElsewhere || m.level > 0
			continue
		}
		v := &c.views[len(c.members)]
		c.members = append(c.members, m)
		m.view(v, now, fresh, &p.cfg)
		listed := l.names(project.id, i, m) && m.recent(now, &p.cfg)
		c.listed = append(c.listed, listed)
		m.expect(v, project.id, listed, now)
		if v.Cache == selection.Cached && l.tellsSize(project.id, i, m) {
			teller = i
		}
	}
	if teller >= 0 {
		project.listed = l.sizeBy(project.id, teller, set[teller])
	}
	c.views = c.views[:len(c.members)]
	return c
}

// view fills v with the load, by the last report if that is fresh.
func (m *member) view(v *selection.View, now time.Time, fresh bool, cfg *Config) {
	*v = selection.View{}
	v.ID, v.Weight, v.Cores = m.id, m.Weight, m.cores(cfg)
	v.FetchFactor = m.fetchFactor
	v.InFlight = float64(m.load.inFlight)
	v.Jobs = m.load.present(fresh)
	v.Assigned = m.load.assigned(fresh)
	v.Rate = v.Cores * m.believed.pace
	v.Latency = m.latency.value
	v.IdleIO = 1 / float64(1+m.cold)
	v.Age = math.Inf(1)
	busy := v.Jobs
	if fresh {
		v.Age = now.Sub(m.load.at).Seconds()
		v.Stalled = m.load.stalled
		if m.coresBusy >= 0 {
			busy = m.coresBusy
		}
	}
	v.IdleCPU = max(0, 1-busy/v.Cores)
}

// expect fills v with what depends on the project and the time.
func (m *member) expect(v *selection.View, project uint64, listed bool, now time.Time) {
	v.Cache = m.cacheOf(project, listed)
	switch v.Cache {
	case selection.Cached:
		v.Warm = 1
	case selection.AssumedCached:
		v.Warm = 0.95
	}
	v.Uptime, v.Left = math.Inf(1), math.Inf(1)
	if !m.up.IsZero() {
		v.Uptime = now.Sub(m.up).Seconds()
	}
	if !m.StopsAt.IsZero() {
		v.Left = m.StopsAt.Sub(now).Seconds()
	}
}

// successorLives is how long a successor must live on at least. To fetch data
// for a shorter time does not pay, as for placements.
const successorLives = 30 * time.Minute

// Successor is the upstream that a project falls to when the one at leaving
// goes: of those that may be picked and stay, the first in the project's
// rendezvous order. It is "" when there is none, and when one of them has the
// data already.
func (p *Pool) Successor(now time.Time, project uint64, leaving string) string {
	successor, best := "", 0.0
	for _, m := range p.set {
		if m.Address == leaving || m.drains() || !m.gate.Ready(now) || m.shunned(now) ||
			!m.StopsAt.IsZero() && m.StopsAt.Before(now.Add(successorLives)) {
			continue
		}
		if m.cache(project, now, &p.cfg) != selection.NotCached {
			return ""
		}
		if score := selection.Rendezvous(project, m.id, m.Weight); successor == "" || score > best {
			successor, best = m.Address, score
		}
	}
	return successor
}
