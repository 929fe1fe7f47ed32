package pool

import (
	"cmp"
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
	// ErrNotAdmitted wraps ErrNoneEligible: overload detection refuses jobs of this project and priority, but admits
	// other jobs.
	ErrNotAdmitted = fmt.Errorf("%w for this project and priority", ErrNoneEligible)
	// ErrBusy wraps ErrNoneEligible: no upstream has a free core for a prefetch.
	ErrBusy = fmt.Errorf("%w: no core is free for a prefetch", ErrNoneEligible)
	// ErrAllTried: the job has tried every upstream that takes new jobs.
	ErrAllTried = errors.New("every upstream has been tried")
	// ErrEmpty: the pool has no upstreams.
	ErrEmpty = errors.New("no upstreams are known")
)

// routingReason returns why a job that has tried some upstreams does not go to m, apart from m's health and load. That
// m stops or drains is no reason if all upstreams stop or drain.
func (p *Pool) routingReason(now time.Time, m *member, tried *AddressSet, heavy bool) Reason {
	switch r := m.leavingReason(now); {
	case !p.accepting.accepts(m, heavy):
		return Dedicated
	case r != Eligible && !p.countAccepting(now, heavy).allLeaving:
		return r
	case tried.Has(m.Address):
		return Tried
	}
	return Eligible
}

// AllTried reports whether a job has tried all upstreams that take new jobs. Upstreams that stop or drain count only if
// all do.
func (p *Pool) AllTried(now time.Time, tried *AddressSet, heavy bool) bool {
	return len(p.set) > 0 && tried.Len() >= p.countAccepting(now, heavy).n && // most calls end here
		!slices.ContainsFunc(p.set, func(m *member) bool { return p.routingReason(now, m, tried, heavy) == Eligible })
}

// eligible finds the upstreams that a job can go to: those with the least severe reason against them, if upstreams with
// that reason get jobs at all. If there are none, it searches again and lets breakers that have been open for the
// first, undoubled open time pass for half open. In a large pool it considers only some upstreams if one of them has a
// free core. It needs c.need and sets the rest of c; nothing else changes.
func (p *Pool) eligible(now time.Time, c *candidates, among, tried *AddressSet, rng *rand.Rand) error {
	n := &c.need
	c.job = selection.Job{
		Project:  n.project.id,
		Priority: n.priority,
		Number:   p.watch.Claims(),
		Hour:     uint64(now.Unix() / 3600),
		Service:  p.norms.service,
		Open:     float64(n.named.open),
	}
	if n.prompt != nil {
		c.job.Prompt, c.job.QueuedBehind, c.job.FirstPlaceHitRate = true, p.prompts.QueuedBehind(), p.prompts.FirstPlaceHitRate()
	}
	set := p.set
	if among != nil {
		set = p.membersAt(among)
	}
	if among != nil || !p.considerSome(now, c, tried, rng) {
		p.consider(now, c, set, tried, p.rules(now, p.set, n.heavy))
	}
	if len(c.members) == 0 && slices.Contains(c.reasons, Shut) {
		c.rules.early = true
		p.consider(now, c, set, tried, c.rules)
	}
	c.job.Fetch = p.fetch(n)                              // after consider, which finds the data's size in cache listings
	c.job.OneOffProbability = c.oneOff() * p.oneOffs.mean // 0 unless the project is new
	switch {
	case len(c.members) > 0:
		return nil
	case len(p.set) == 0:
		return ErrEmpty
	case p.AllTried(now, tried, n.heavy):
		return ErrAllTried
	case c.reason == NotAdmitted, p.accepting.mixed && !n.heavy: // other projects are admitted, or a heavy job could be
		return ErrNotAdmitted
	}
	return ErrNoneEligible
}

// considerSome considers some upstreams of a large pool, and reports whether they suffice. The upstreams on the
// project's shortlist suffice if one of them has a free core. Otherwise, in a very large pool, a larger sample
// suffices. For a job that has tried many upstreams, a small sample suffices.
func (p *Pool) considerSome(now time.Time, c *candidates, tried *AddressSet, rng *rand.Rand) bool {
	_, local := p.cfg.Policy.(selection.Local)
	late := tried.Len() >= shortlistSize
	if len(p.set) < shortlistFrom || !local && !late {
		return false
	}
	if c.need.project.id != 0 && !late {
		c.subset = p.shortlist(c.subset[:0], c.need.project)
	} else {
		c.subset = p.addSample(now, c.subset[:0], shortlistSize, tried, c.need.heavy, rng)
	}
	eligible := func() bool {
		p.consider(now, c, c.subset, tried, p.rules(now, c.subset, c.need.heavy))
		return c.reason == Eligible && c.rules.areUsual()
	}
	if eligible() && (late || slices.ContainsFunc(c.views, hasFreeCore)) {
		return true
	}
	if len(p.set) < sampleFrom {
		return false
	}
	c.subset = p.addSample(now, c.subset, sampleSize, tried, c.need.heavy, rng)
	return eligible()
}

// addSample adds upstreams that the job can go to, from a random position in the pool on, until the set has the given
// size.
func (p *Pool) addSample(now time.Time, set []*member, size int, tried *AddressSet, heavy bool, rng *rand.Rand) []*member {
	before, from := set, rng.IntN(len(p.set))
	for i := 0; i < len(p.set) && len(set) < size; i++ {
		m := p.set[(from+i)%len(p.set)]
		if m.breaker.Ready(now) && p.routingReason(now, m, tried, heavy) == Eligible && !slices.Contains(before, m) {
			set = append(set, m)
		}
	}
	return set
}

// consider makes the upstreams of a set that have the least severe reason against them the candidates. There are no
// candidates if upstreams with that reason get no jobs.
func (p *Pool) consider(now time.Time, c *candidates, set []*member, tried *AddressSet, count rules) {
	c.members, c.views, c.reasons, c.reason, c.rules = c.members[:0], c.views[:0], c.reasons[:0], Elsewhere, count
	for _, m := range set {
		r := p.routingReason(now, m, tried, c.need.heavy)
		if r == Eligible {
			r = m.reason(now, &c.job, count, p.cfg.Interval)
		}
		if r == Eligible && c.need.heavy && !m.Heavy {
			r = Ordinary
		}
		if c.need.healthy && !m.isHealthy(now) {
			r = max(r, Shut)
		}
		c.reasons = append(c.reasons, r)
		c.reason = min(c.reason, r)
	}
	if !c.reason.getsJobs() {
		return
	}
	for i, m := range set {
		if c.reasons[i] == c.reason {
			c.members, c.views = append(c.members, m), append(c.views, selection.View{})
			p.fillView(&c.views[len(c.views)-1], now, m, c)
		}
	}
}

// fillView fills in a policy's view of m: its load, and how much of the job's data is cached there.
func (p *Pool) fillView(v *selection.View, now time.Time, m *member, c *candidates) {
	fresh := m.isFresh(now, p.cfg.Interval)
	v.ID, v.Weight, v.Cores = m.id, m.Weight*m.ramp(now), m.cores(&p.norms)
	v.InFlight = float64(m.load.inFlight)
	v.Jobs = m.load.present(fresh)
	if c.need.project.id == 0 || m.unanswered.ofProject[c.need.project.id] == 0 { // otherwise the blocked jobs will need cores at the same time as this job
		v.BlockedJobs = m.load.blocked(fresh)
	}
	if c.job.Priority == selection.High {
		v.Overtaken = m.load.overtaken(fresh, v.Cores)
	}
	v.Assigned = m.load.assigned(fresh)
	v.Rate = v.Cores * m.figures.pace(&p.norms)
	v.Latency = m.latency.value
	v.Fresh = fresh
	found, bytes := m.cached.lookUp(now, &c.need, p.cfg.Interval)
	c.need.data.listed = cmp.Or(bytes, c.need.data.listed)
	v.Cache, v.Warm = found.status, found.share
	if c.need.prompt != nil {
		v.PrefillWait = m.cached.prompts.Wait(now)
	}
	if !m.StopsAt.IsZero() {
		v.UntilStop = max(m.StopsAt.Sub(now).Seconds(), 1e-3)
	}
}
