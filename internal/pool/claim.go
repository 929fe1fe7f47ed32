package pool

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"example.org/pilotfish/internal/breaker"
	"example.org/pilotfish/pkg/selection"
)

// The reasons why nothing could be claimed.
var (
	// ErrNoneEligible: there are upstreams to try, but none may be picked now.
	ErrNoneEligible = errors.New("no upstream is eligible")
	// ErrNotAdmitted is the ErrNoneEligible of a job whose rank an overload level
	// refuses, where other jobs are admitted.
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
}

// Claim picks an upstream and counts the job there, in one step. tried are the
// addresses that the job may not go to, for it has been there. The caller must
// end the assignment with Done.
func (p *Pool) Claim(now time.Time, r Request, tried []string) (*Assignment, error) {
	if len(p.set) == 0 {
		return nil, ErrEmpty
	}
	job := p.job(now, r)
	panicking, err := p.gather(now, &job, tried)
	if err != nil {
		return nil, err
	}
	for len(p.candidate) > 0 {
		i := p.cfg.Policy.Pick(job, p.views, p.cfg.Rand)
		m := p.candidate[i]
		tell, ok := m.gate.Enter(now)
		if !ok && !panicking {
			p.views = slices.Delete(p.views, i, i+1)
			p.candidate = slices.Delete(p.candidate, i, i+1)
			continue
		}
		if !ok {
			tell = func(time.Time, breaker.Verdict) {}
		}
		return p.assign(now, job, i, panicking, tell), nil
	}
	return nil, ErrNoneEligible
}

// job makes the policy's input from the request and what was learned.
func (p *Pool) job(now time.Time, r Request) selection.Job {
	return selection.Job{
		Project:  r.Project,
		Priority: r.Priority,
		Number:   p.number,
		Hour:     uint64(now.Unix() / 3600),
		Fetch:    p.fetches.expected(r.Project),
	}
}

// gather fills candidate and views with the eligible upstreams: not tried, not
// draining, not overloaded, breaker closed. When breakers alone keep out more
// than half of the pool they are ignored, for then the fault is more likely
// ours than theirs. When every upstream drains, draining is ignored; and one that
// has just refused a job for load is asked again only when no other is left.
func (p *Pool) gather(now time.Time, job *selection.Job, tried []string) (panicking bool, err error) {
	shut := p.look(now, job, tried, false, false)
	if panicking = 2*shut > len(p.set); panicking {
		p.look(now, job, tried, true, false)
	}
	if len(p.candidate) == 0 {
		p.look(now, job, tried, panicking, true)
	}
	switch {
	case len(p.candidate) > 0:
		return panicking, nil
	case p.AllTried(tried):
		return panicking, ErrAllTried
	case p.ranked:
		return panicking, ErrNotAdmitted
	}
	return panicking, ErrNoneEligible
}

// assign counts the job at candidate i.
func (p *Pool) assign(now time.Time, job selection.Job, i int, panicking bool, tell func(time.Time, breaker.Verdict)) *Assignment {
	m, v := p.candidate[i], &p.views[i]
	a := &Assignment{
		Choice: Choice{Address: m.Address, Cache: v.Cache, Panic: panicking},
		pool:   p, member: m, project: job.Project, claimed: now, tell: tell, idle: v.Jobs < v.Cores,
	}
	if c, ok := p.cfg.Policy.(selection.Coster); ok && p.cfg.Explain {
		p.costs = slices.Grow(p.costs[:0], len(p.views))[:len(p.views)]
		c.Costs(job, p.views, p.costs)
		a.Cost = p.costs[i]
	}
	p.number++
	p.inFlight++
	m.inFlight++
	m.begun++
	m.assigned++
	m.open.add(a)
	if job.Project != 0 && v.Cache == selection.NotCached {
		a.cold = true
		m.cold++
		m.assumed.put(job.Project, now)
	}
	return a
}
