package pool

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"example.org/pilotfish/pkg/selection"
)

// The errors of a claim.
var (
	// ErrNoneEligible: no upstream is eligible now. The job can wait for one.
	ErrNoneEligible = errors.New("no upstream is eligible")
	// ErrNotAdmitted wraps ErrNoneEligible: overload detection refuses this project and priority, and admits others.
	ErrNotAdmitted = fmt.Errorf("%w for this project and priority", ErrNoneEligible)
	// ErrBusy wraps ErrNoneEligible: no upstream has a free core for a prefetch.
	ErrBusy = fmt.Errorf("%w: no core is free for a prefetch", ErrNoneEligible)
	// ErrAllTried: the job has tried every upstream that takes new jobs.
	ErrAllTried = errors.New("every upstream has been tried")
	// ErrEmpty: the pool has no upstreams.
	ErrEmpty = errors.New("no upstreams are known")
)

// routingReason is why a job that has tried some upstreams does not go to m, apart from m's health and load. If no upstream
// takes new jobs, because all stop or drain, that is no reason.
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

// rules returns the rules for the upstreams of a set that take new heavy or ordinary jobs.
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

// AllTried reports whether a job has tried all upstreams that take new jobs. It does not wait for those that stop or drain,
// unless all do.
func (p *Pool) AllTried(now time.Time, tried *Places, heavy bool) bool {
	return len(p.set) > 0 && tried.Len() >= p.takers(now, heavy).n && // most calls end here
		!slices.ContainsFunc(p.set, func(m *member) bool { return p.routingReason(now, m, tried, heavy) == Eligible })
}

// eligible finds the upstreams that a job can go to: those with the least reason against them, if an upstream with that
// reason gets jobs at all. If there are none, breakers count as half open after the first open time, whatever it has grown
// to. In a large pool it considers only some upstreams, if those suffice. It needs c.need and sets the rest of c; nothing
// else changes.
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
	if among != nil || !p.considerFew(now, c, tried, rng) {
		p.consider(now, c, set, tried, p.rules(now, p.set, n.heavy))
	}
	if len(c.members) == 0 && slices.Contains(c.reasons, Shut) {
		c.rules.early = true
		p.consider(now, c, set, tried, c.rules)
	}
	c.job.Fetch = p.fetch(n)              // after consider, which reads sizes from listings
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

// considerFew considers some upstreams of a large pool, and reports whether they suffice: those near the project if one of them
// has a free core, else more in a very large pool. For a job that has tried many upstreams it considers some others.
func (p *Pool) considerFew(now time.Time, c *candidates, tried *Places, rng *rand.Rand) bool {
	_, local := p.cfg.Policy.(selection.Local)
	late := tried.Len() >= near
	if len(p.set) < nearFrom || !local && !late {
		return false
	}
	if c.need.project.id != 0 && !late {
		c.near = p.nearby(c.near[:0], c.need.project)
	} else {
		c.near = p.addSome(now, c.near[:0], near, tried, c.need.heavy, rng)
	}
	eligible := func() bool {
		p.consider(now, c, c.near, tried, p.rules(now, c.near, c.need.heavy))
		return c.reason == Eligible && c.rules == rules{suspicion: true, breakers: true}
	}
	if eligible() && (late || slices.ContainsFunc(c.views, hasFreeCore)) {
		return true
	}
	if len(p.set) < manyFrom {
		return false
	}
	c.near = p.addSome(now, c.near, many, tried, c.need.heavy, rng)
	return eligible()
}

// addSome adds upstreams that a job can go to, starting at a random one, until the set has that size.
func (p *Pool) addSome(now time.Time, set []*member, size int, tried *Places, heavy bool, rng *rand.Rand) []*member {
	before, from := set, rng.IntN(len(p.set))
	for i := 0; i < len(p.set) && len(set) < size; i++ {
		m := p.set[(from+i)%len(p.set)]
		if m.breaker.Ready(now) && p.routingReason(now, m, tried, heavy) == Eligible && !slices.Contains(before, m) {
			set = append(set, m)
		}
	}
	return set
}

// consider makes candidates of the upstreams of a set with the least reason against them. There are none if upstreams with
// that reason get no jobs. It runs for every claim, so it computes each thing once.
func (p *Pool) consider(now time.Time, c *candidates, set []*member, tried *Places, count rules) {
	c.members, c.views, c.reasons, c.reason, c.rules = c.members[:0], c.views[:0], c.reasons[:0], Elsewhere, count
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

// view fills in what a policy sees of m: its load, by the last report if that is fresh, and the job's data there.
func (p *Pool) view(v *selection.View, now time.Time, m *member, c *candidates) {
	fresh := m.fresh(now, p.cfg.Interval)
	v.ID, v.Weight, v.Cores = m.id, m.Weight*m.ramp(now), m.cores(&p.norms)
	v.InFlight = float64(m.load.inFlight)
	v.Jobs = m.load.present(fresh)
	if c.need.project.id == 0 || m.unanswered.ofProject[c.need.project.id] == 0 { // else the jobs that wait will need cores when this one does
		v.Coreless = m.load.blocked(fresh)
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
