package pool

import (
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
	// Bytes is the size of the project's data, if the job tells it; 0 if not.
	Bytes float64
	// Among, if not nil, are the only addresses that the job may go to.
	Among []string
	// Fallbacks is how many upstreams Choice.Fallbacks names at most.
	Fallbacks int
	// Waiter is the job if it may be moved while it waits; nil if not.
	Waiter Waiter
}

// Claim picks an upstream and counts the job there, in one step. tried are the
// addresses that the job has been to, and may not go to again. The caller must
// end the assignment with Done.
func (p *Pool) Claim(now time.Time, r Request, tried []string) (*Assignment, error) {
	n := p.need(r.Project, r.Data, true)
	if r.Project != 0 && saneBytes(r.Bytes) {
		n.project.told = r.Bytes
	}
	job := p.job(now, r.Priority, n)
	c, err := p.eligible(now, &job, n, r.Among, tried)
	if err != nil {
		return nil, err
	}
	job.Once = p.comesOnce(n.project, c, len(tried) == 0)
	for len(c.members) > 0 {
		i, costs := p.pick(job, c.views)
		entered, ok := c.members[i].health.enter(now)
		if !ok && c.count.breakers {
			c.remove(i)
			continue
		}
		a := p.assign(now, r.Waiter, job, n, c, i, costs, entered)
		a.consultShadow(job, c, costs)
		a.Fallbacks = p.fallbacks(job, c, i, r.Fallbacks)
		return a, nil
	}
	return nil, ErrNoneEligible
}

// comesOnce is the probability that no other job of a project comes: 0 where one came before,
// here or at an upstream that has its data. first says that it is not a retry.
func (p *Pool) comesOnce(project *projectState, c *candidates, first bool) float64 {
	seen := project.seen
	for i := range c.views {
		seen = seen || c.views[i].Cache != selection.NotCached
	}
	project.seen = true
	once := 1.0
	if seen {
		once = 0
	}
	if first && project.id != 0 {
		p.once.observe(once, lately)
	}
	return once * p.once.mean
}

// pick picks one of the views. costs are what the policy weighed; nil if it cannot say.
// They are valid until the next call.
func (p *Pool) pick(job selection.Job, views []selection.View) (i int, costs []selection.Cost) {
	coster, ok := p.cfg.Policy.(selection.Coster)
	if !ok {
		return p.cfg.Policy.Pick(job, views, p.cfg.Rand), nil
	}
	p.costs = slices.Grow(p.costs[:0], len(views))[:len(views)]
	return coster.PickWithCosts(job, views, p.costs, p.cfg.Rand), p.costs
}

// job makes the policy's input for a job of the project. What depends on the upstreams
// is filled in by eligible.
func (p *Pool) job(now time.Time, priority selection.Priority, n *need) selection.Job {
	return selection.Job{
		Project:  n.project.id,
		Text:     n.text,
		Behind:   p.before.mean,
		Home:     p.home.mean,
		Priority: priority,
		Number:   p.number,
		Hour:     uint64(now.Unix() / 3600),
		Service:  p.service,
	}
}

// assign counts the job at candidate i. costs are as of pick.
func (p *Pool) assign(now time.Time, waiter Waiter, job selection.Job, n *need, c *candidates, i int, costs []selection.Cost, entered entry) *Assignment {
	m, v := c.members[i], &c.views[i]
	a := &Assignment{
		Choice: Choice{Address: m.Address, Claimed: now, Expected: p.length(n.project), Why: Why{Panic: !c.count.breakers}},
		pool:   p, member: m, need: *n, atBreaker: entered, idle: v.Jobs < v.Cores,
		waiting: waiting{job: waiter, priority: job.Priority, project: n.named.id},
	}
	a.keep()
	if costs != nil {
		a.Cost = costs[i]
	}
	for j := range costs {
		if j != i && (a.RunnerUp == "" || costs[j].Total < a.RunnerUpCost) {
			a.RunnerUp, a.RunnerUpCost = c.members[j].Address, costs[j].Total
		}
	}
	p.number++
	a.count()
	return a
}

// consultShadow notes where the shadow would have sent the job. costs are as of pick.
func (a *Assignment) consultShadow(job selection.Job, c *candidates, costs []selection.Cost) {
	s := a.pool.cfg.Shadow
	if s == nil {
		return
	}
	i := 0
	if coster, ok := s.Policy.(selection.Coster); ok {
		a.pool.shadow = slices.Grow(a.pool.shadow[:0], len(c.views))[:len(c.views)]
		i = coster.PickWithCosts(job, c.views, a.pool.shadow, s.Rand)
	} else {
		i = s.Policy.Pick(job, c.views, s.Rand)
	}
	a.Shadow = c.members[i].Address
	if costs != nil {
		a.ShadowCost = costs[i].Total
	}
}

// fallbacks are what the policy would pick if candidate i were not there, then
// if the first fall-back were not there either, and so on.
func (p *Pool) fallbacks(job selection.Job, c *candidates, i, most int) (addresses []string) {
	for range most {
		c.remove(i)
		if len(c.members) == 0 {
			break
		}
		i = p.cfg.Policy.Pick(job, c.views, p.cfg.Rand)
		addresses = append(addresses, c.members[i].Address)
	}
	return addresses
}
