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

// Request is what Claim is asked for.
type Request struct {
	// Project is a hash of the project's identifier; 0 for none.
	Project  uint64
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
	project := p.projects.of(r.Project)
	if r.Project != 0 && saneBytes(r.Bytes) {
		project.told = r.Bytes
	}
	job := p.job(now, r.Priority, project)
	c, err := p.eligible(now, &job, project, r.Among, tried)
	if errors.Is(err, ErrNoneEligible) && p.hasten(now, r.Among, tried) {
		c, err = p.eligible(now, &job, project, r.Among, tried)
	}
	if err != nil {
		return nil, err
	}
	for len(c.members) > 0 {
		i, costs := p.pick(job, c.views)
		entered, ok := c.members[i].enter(now)
		if !ok && !c.panicking {
			c.remove(i)
			continue
		}
		a := p.assign(now, r.Waiter, job, project, c, i, costs, entered)
		a.Fallbacks = p.fallbacks(job, c, i, r.Fallbacks)
		return a, nil
	}
	return nil, ErrNoneEligible
}

// hasten cuts the open times of the upstreams that a job may go to, and reports whether
// the breaker of one is ready thereby. An open time grows so that jobs are spared; a job that
// finds no other upstream is not.
func (p *Pool) hasten(now time.Time, among, tried []string) (ready bool) {
	for _, m := range p.set {
		if m.gate.Ready(now) || m.drains() && !p.draining || slices.Contains(tried, m.Address) ||
			among != nil && !slices.Contains(among, m.Address) {
			continue
		}
		m.gate.Hasten()
		ready = ready || m.gate.Ready(now)
	}
	return ready
}

// pick picks one of the views. costs are what the policy weighed, where an assignment
// carries that, or else nil. They are valid until the next call.
func (p *Pool) pick(job selection.Job, views []selection.View) (i int, costs []selection.Cost) {
	coster, ok := p.cfg.Policy.(selection.Coster)
	if !ok || !p.cfg.Explain {
		return p.cfg.Policy.Pick(job, views, p.cfg.Rand), nil
	}
	p.costs = slices.Grow(p.costs[:0], len(views))[:len(views)]
	return coster.PickWithCosts(job, views, p.costs, p.cfg.Rand), p.costs
}

// job makes the policy's input for a job of the project. What depends on the upstreams
// is filled in by eligible.
func (p *Pool) job(now time.Time, priority selection.Priority, project *projectState) selection.Job {
	return selection.Job{
		Project:  project.id,
		Priority: priority,
		Number:   p.number,
		Hour:     uint64(now.Unix() / 3600),
		Open:     float64(project.open),
		Length:   p.answers.relative(project.answers),
	}
}

// assign counts the job at candidate i. costs are as of pick.
func (p *Pool) assign(now time.Time, waiter Waiter, job selection.Job, project *projectState, c *candidates, i int, costs []selection.Cost, entered entrance) *Assignment {
	m, v := c.members[i], &c.views[i]
	a := &Assignment{
		Choice: Choice{Address: m.Address, Claimed: now, Cache: v.Cache, Fetch: job.Fetch, Panic: c.panicking},
		pool:   p, member: m, project: project, entered: entered, idle: v.Jobs < v.Cores,
		listed: c.listed[i], priority: job.Priority, waiter: waiter,
	}
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
