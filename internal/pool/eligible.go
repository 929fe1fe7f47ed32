package pool

import (
	"errors"
	"fmt"
	"math/rand/v2"
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
	// ErrBusy is the ErrNoneEligible of a prefetch that finds no upstream with a free core.
	ErrBusy = fmt.Errorf("%w: no core is free for a prefetch", ErrNoneEligible)
	// ErrAllTried: the job has been to every upstream that takes new jobs.
	ErrAllTried = errors.New("every upstream has been tried")
	// ErrEmpty: the pool has no upstreams.
	ErrEmpty = errors.New("no upstreams are known")
)

// routingReason is why a job that has been to the upstreams in tried does not go to m, whatever m's health; Eligible if it
// may. While all upstreams leave, that is no reason.
func (p *Pool) routingReason(now time.Time, m *member, tried *Places, heavy bool) Reason {
	switch r := m.leaving(now); {
	case !p.counted.serves(m, heavy):
		return Dedicated
	case r != Eligible && !p.takers(now, heavy).all:
		return r
	case tried.Has(m.Address):
		return Tried
	}
	return Eligible
}

// rules says which count among the upstreams of a set that take new jobs, heavy or ordinary ones.
func (p *Pool) rules(now time.Time, set []*member, heavy bool) rules {
	all, takers, suspects, shut := p.takers(now, heavy).all, 0, 0, 0
	for _, m := range set {
		if !p.counted.serves(m, heavy) || m.leaving(now) != Eligible && !all {
			continue
		}
		takers++
		if m.suspicion.Why() != "" {
			suspects++
		}
		if !m.breaker.Ready(now) {
			shut++
		}
	}
	return rules{suspicion: 2*suspects <= takers, breakers: shut < takers || takers == 0}
}

// AllTried reports whether there are upstreams, and a job has been to all that
// take its new jobs: what leaves is nothing to wait for, unless all leave.
func (p *Pool) AllTried(now time.Time, tried *Places, heavy bool) bool {
	return len(p.set) > 0 && tried.Len() >= p.takers(now, heavy).n && // fewer cannot be all: most calls end here
		!slices.ContainsFunc(p.set, func(m *member) bool { return p.routingReason(now, m, tried, heavy) == Eligible })
}

// eligible finds the upstreams that a job may go to: those with the least reason against them, if that is one with which
// an upstream gets jobs. If there are none, breakers count as half open as soon as the first open time is over: the growth
// of open times spares jobs, and this job finds no other upstream.
//
// In a large pool it looks at a few upstreams, if those suffice. c has what the job needs, and gets the rest. Nothing else
// changes.
func (p *Pool) eligible(now time.Time, c *candidates, among, tried *Places, rng *rand.Rand) error {
	n := &c.need
	c.job = selection.Job{
		Project:  n.project.id,
		Priority: n.priority,
		Number:   p.watch.Claims(),
		Hour:     uint64(now.Unix() / 3600),
		Service:  p.norms.service,
	}
	if n.prompt != nil {
		c.job.Prompt, c.job.QueuedBehind, c.job.FirstPlaceHitRate = true, p.prompts.QueuedBehind(), p.prompts.FirstPlaceHitRate()
	}
	set := p.set
	if among != nil {
		set = p.among(among)
	}
	if among != nil || !p.few(now, c, tried, rng) {
		p.look(now, c, set, tried, p.rules(now, p.set, n.heavy))
	}
	if len(c.members) == 0 && slices.Contains(c.reasons, Shut) {
		c.count.early = true
		p.look(now, c, set, tried, c.count)
	}
	c.job.Fetch = p.fetch(n)              // after the look, as a listing may tell a size
	c.job.Once = c.oneOff() * p.once.mean // the probability that no other job of the project comes
	switch {
	case len(c.members) > 0:
		return nil
	case len(p.set) == 0:
		return ErrEmpty
	case p.AllTried(now, tried, n.heavy):
		return ErrAllTried
	case c.reason == NotAdmitted, p.counted.mixed && !n.heavy: // a heavy job may find one
		return ErrNotAdmitted
	}
	return ErrNoneEligible
}

// few looks at some upstreams of a large pool, and reports whether they suffice: at those near the project while one of
// them has a free core, or else at more if the pool is very large. A job that has been to many looks at a few others.
func (p *Pool) few(now time.Time, c *candidates, tried *Places, rng *rand.Rand) bool {
	_, local := p.cfg.Policy.(selection.Local)
	late := tried.Len() >= near
	if len(p.set) < nearFrom || !local && !late {
		return false
	}
	if c.need.project.id != 0 && !late {
		c.near = p.nearby(c.near[:0], c.need.project)
	} else {
		c.near = p.some(now, c.near[:0], near, tried, c.need.heavy, rng)
	}
	eligible := func() bool {
		p.look(now, c, c.near, tried, p.rules(now, c.near, c.need.heavy))
		return c.reason == Eligible && c.count == rules{suspicion: true, breakers: true}
	}
	if eligible() && (late || slices.ContainsFunc(c.views, hasFreeCore)) {
		return true
	}
	if len(p.set) < manyFrom {
		return false
	}
	c.near = p.some(now, c.near, many, tried, c.need.heavy, rng)
	return eligible()
}

// some adds to a set more upstreams, from a random one on, to which a job that has been to those in tried can go. They
// become as many as that, if there are so many.
func (p *Pool) some(now time.Time, set []*member, size int, tried *Places, heavy bool, rng *rand.Rand) []*member {
	before, from := set, rng.IntN(len(p.set))
	for i := 0; i < len(p.set) && len(set) < size; i++ {
		m := p.set[(from+i)%len(p.set)]
		if m.breaker.Ready(now) && p.routingReason(now, m, tried, heavy) == Eligible && !slices.Contains(before, m) {
			set = append(set, m)
		}
	}
	return set
}

// look goes through the upstreams of a set. That happens for every claim, so it
// asks each thing once. The candidates are empty if the least reason allows none.
func (p *Pool) look(now time.Time, c *candidates, set []*member, tried *Places, count rules) {
	c.members, c.views, c.reasons, c.reason, c.count = c.members[:0], c.views[:0], c.reasons[:0], Elsewhere, count
	for _, m := range set {
		r := p.routingReason(now, m, tried, c.need.heavy)
		if r == Eligible {
			r = m.reason(now, &c.job, count, p.cfg.Interval)
		}
		if r == Eligible && c.need.heavy && !m.Heavy {
			r = Ordinary
		}
		c.reasons = append(c.reasons, r)
		c.reason = min(c.reason, r)
	}
	if c.reason != Eligible && c.reason != Ordinary && c.reason != Shedding && c.reason != Suspect {
		return
	}
	for i, m := range set {
		if c.reasons[i] == c.reason {
			c.members, c.views = append(c.members, m), append(c.views, selection.View{})
			p.view(&c.views[len(c.views)-1], now, m, c)
		}
	}
}

// view fills v with the load at m, by the last report if that is fresh, and with what depends on the job's data.
func (p *Pool) view(v *selection.View, now time.Time, m *member, c *candidates) {
	fresh := m.fresh(now, p.cfg.Interval)
	v.ID, v.Weight, v.Cores = m.id, m.Weight*m.ramp(now), m.cores(&p.norms)
	v.InFlight = float64(m.load.inFlight)
	v.Jobs = m.load.present(fresh)
	if c.need.project.id == 0 || m.unanswered.ofProject[c.need.project.id] == 0 { // else those that wait need cores when this job does
		v.Coreless = m.load.coreless(fresh)
	}
	if c.job.Priority == selection.High {
		v.Overtaken = m.load.overtaken(fresh, v.Cores)
	}
	v.Assigned = m.load.assigned(fresh)
	v.Rate = v.Cores * m.figures.pace(&p.norms)
	v.Latency = m.latency.value
	v.Fresh = fresh
	found := m.cached.holds(now, &c.need, p.cfg.Interval)
	v.Cache, v.Warm = found.cache, found.warm
	if c.need.prompt != nil {
		v.PrefillWait = m.cached.prompts.Wait(now)
	}
	if !m.StopsAt.IsZero() {
		v.Left = max(m.StopsAt.Sub(now).Seconds(), 1e-3)
	}
}
