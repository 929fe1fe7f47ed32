package pool

import (
	"slices"
	"time"

	"example.org/pilotfish/internal/health"
)

// Claim picks an upstream and counts the job there, in one step. The job does not go to the upstreams in tried. The caller
// must end the assignment with Done.
func (p *Pool) Claim(now time.Time, r Request, tried *AddressSet) (*Assignment, error) {
	c := &p.scratch
	n := &c.need
	p.fillNeed(n, &r, true)
	n.heavy, n.prefetch = r.Heavy, r.Prefetch
	if r.Project != 0 && plausibleBytes(r.Bytes) {
		n.project.reportedBytes = r.Bytes
	}
	if err := p.eligible(now, c, r.Among, tried, p.cfg.Rand); err != nil {
		return nil, err
	}
	if r.Prefetch && !slices.ContainsFunc(c.views, hasFreeCore) {
		return nil, ErrBusy
	}
	if tried.Len() == 0 && n.project.id != 0 {
		p.oneOffs.observe(c.oneOff(), recentOfAll)
	}
	n.project.seen = true
	for len(c.members) > 0 {
		i := c.choose(p.cfg.Policy, &c.costs, p.cfg.Rand)
		entered, ok := c.members[i].breaker.Enter(now, c.rules.early)
		if !ok && c.rules.breakers {
			c.remove(i)
			continue
		}
		p.learnSizes(c.members[i], n)
		a := p.assign(now, r.Waiter, c, i, entered)
		a.consultShadow(p.cfg.Shadow, c)
		a.Fallbacks = p.fallbacks(c, i, r.Fallbacks)
		return a, nil
	}
	return nil, ErrNoneEligible
}

// assign counts the job at candidate i, whose breaker has let it through.
func (p *Pool) assign(now time.Time, w Waiter, c *candidates, i int, e health.Entry) *Assignment {
	m, v := c.members[i], &c.views[i]
	a := &Assignment{
		Choice: Choice{Address: m.Address, Claimed: now, Explanation: Explanation{Panic: !c.rules.breakers, Heavy: c.need.heavy, Dedicated: c.need.heavy && m.Heavy}},
		sent:   sent{waiter: w},
		pool:   p, member: m, entry: e, idle: hasFreeCore(*v),
	}
	c.need.clone(&a.need)
	if !a.prefetch {
		a.Expected, _ = p.lengths.coreTime(&a.need, v, c.job.Fetch)
	}
	for j, cost := range c.costs {
		switch {
		case j == i:
			a.Cost = cost
		case a.RunnerUp == "" || cost.Total < a.RunnerUpCost:
			a.RunnerUp, a.RunnerUpCost = c.members[j].Address, cost.Total
		}
	}
	a.count()
	return a
}

// consultShadow records where the shadow policy would have sent the job.
func (a *Assignment) consultShadow(s *Shadow, c *candidates) {
	if s == nil {
		return
	}
	i := c.choose(s.Policy, &c.shadow, s.Rand)
	a.Shadow, a.ShadowCache = c.members[i].Address, c.views[i].Cache
	if len(c.costs) > 0 {
		a.ShadowCost = c.costs[i].Total
	}
}

// fallbacks returns the upstreams that the policy picks if candidate i is left out, then if the first fallback is left
// out, too, and so on. It removes candidate i and all of them but the last from c.
func (p *Pool) fallbacks(c *candidates, i, most int) (addresses []string) {
	for range most {
		c.remove(i)
		if len(c.members) == 0 {
			break
		}
		i = p.cfg.Policy.Pick(c.job, c.views, p.cfg.Rand)
		addresses = append(addresses, c.members[i].Address)
	}
	return addresses
}
