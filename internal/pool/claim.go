package pool

import (
	"math/rand/v2"
	"slices"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/pkg/selection"
)

// Request is what Claim is asked for.
type Request struct {
	// Project is a hash of the project's identifier; 0 for none.
	Project uint64
	// Data is the parts of the project's data; nil is one.
	Data     *intake.Parts
	Priority selection.Priority
	// Prefetch is set for a request that only loads the project's data. It needs an upstream with a free core.
	Prefetch bool
	// Heavy is what Pool.Heavy returns of the job.
	Heavy bool
	// Bytes is the size of the project's data, if the job tells it; 0 if not.
	Bytes float64
	// Among, if not nil, are the only addresses that the job may go to.
	Among *Places
	// Fallbacks is how many upstreams Choice.Fallbacks names at most.
	Fallbacks int
	// Waiter is the job if it may be moved while it waits; nil if not.
	Waiter Waiter
}

// Claim picks an upstream and counts the job there, in one step. tried are the
// addresses that the job has been to, and may not go to again. The caller must
// end the assignment with Done.
func (p *Pool) Claim(now time.Time, r Request, tried *Places) (*Assignment, error) {
	n := p.need(r.Project, r.Data, true)
	n.heavy = r.Heavy
	if r.Project != 0 && saneBytes(r.Bytes) {
		n.project.told = r.Bytes
	}
	c, err := p.eligible(now, r.Priority, n, r.Among, tried, p.cfg.Rand)
	if err != nil {
		return nil, err
	}
	if n.prefetch = r.Prefetch; r.Prefetch && !slices.ContainsFunc(c.views, hasFreeCore) {
		return nil, ErrBusy
	}
	if tried.Len() == 0 && n.project.id != 0 {
		p.once.observe(c.oneOff(), lately)
	}
	n.project.seen = true
	for len(c.members) > 0 {
		i, costs := p.pick(c, p.cfg.Rand)
		entered, ok := c.members[i].health.enter(now, c.count.early)
		if !ok && c.count.breakers {
			c.remove(i)
			continue
		}
		p.learnSizes(c.members[i], n)
		a := p.assign(now, r.Waiter, c, i, costs, entered)
		a.consultShadow(c, costs)
		a.Fallbacks = p.fallbacks(c, i, r.Fallbacks)
		return a, nil
	}
	return nil, ErrNoneEligible
}

// oneOff is 1 where no job of the project came before, neither here nor at an upstream that has its data, else 0.
func (c *candidates) oneOff() float64 {
	if c.need.project.seen || slices.ContainsFunc(c.views, func(v selection.View) bool { return v.Cache != selection.NotCached }) {
		return 0
	}
	return 1
}

// pick picks one of the candidates. costs are what the policy weighed; nil if it cannot say.
// They are valid until the next call.
func (p *Pool) pick(c *candidates, rng *rand.Rand) (i int, costs []selection.Cost) {
	return ask(p.cfg.Policy, c, &p.costs, rng)
}

// ask is the choice of a policy. memory is where the costs go.
func ask(policy selection.Policy, c *candidates, memory *[]selection.Cost, rng *rand.Rand) (int, []selection.Cost) {
	coster, ok := policy.(selection.Coster)
	if !ok {
		return policy.Pick(c.job, c.views, rng), nil
	}
	*memory = slices.Grow((*memory)[:0], len(c.views))[:len(c.views)]
	return coster.PickWithCosts(c.job, c.views, *memory, rng), *memory
}

// assign counts the job at candidate i, whose breaker it has entered. costs are as of pick.
func (p *Pool) assign(now time.Time, w Waiter, c *candidates, i int, costs []selection.Cost, e entry) *Assignment {
	m, v := c.members[i], &c.views[i]
	a := &Assignment{
		Choice: Choice{Address: m.Address, Claimed: now, Why: Why{Panic: !c.count.breakers, Heavy: c.need.heavy, Dedicated: c.need.heavy && m.Heavy}},
		pool:   p, member: m, need: *c.need, waiter: w, priority: c.job.Priority,
		atBreaker: e, idle: hasFreeCore(*v),
	}
	a.parts = append(a.one[:0], a.parts...) // the next claim reuses what they are in
	if p.lengths.n > 1 && !a.prefetch {     // more than the prior
		a.Expected = p.lengths.expected(a.project.lengths, shrinkLengths) + (1-v.Warm)*c.job.Fetch
	}
	if costs != nil {
		a.Cost = costs[i]
	}
	for j := range costs {
		if j != i && (a.RunnerUp == "" || costs[j].Total < a.RunnerUpCost) {
			a.RunnerUp, a.RunnerUpCost = c.members[j].Address, costs[j].Total
		}
	}
	a.count()
	return a
}

// consultShadow notes where the shadow would have sent the job. costs are as of pick.
func (a *Assignment) consultShadow(c *candidates, costs []selection.Cost) {
	s := a.pool.cfg.Shadow
	if s == nil {
		return
	}
	i, _ := ask(s.Policy, c, &a.pool.shadow, s.Rand)
	a.Shadow, a.ShadowCache = c.members[i].Address, c.views[i].Cache
	if costs != nil {
		a.ShadowCost = costs[i].Total
	}
}

// fallbacks are what the policy would pick if candidate i were not there, then
// if the first fall-back were not there either, and so on.
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
