package pool

import (
	"errors"
	"math"
	"slices"
	"time"

	"pilotfish/pkg/selection"
)

// The reasons why nothing could be claimed.
var (
	// ErrNoneEligible: there are upstreams to try, but none may be picked now.
	ErrNoneEligible = errors.New("no upstream is eligible")
	// ErrAllTried: the job has been to every upstream there is.
	ErrAllTried = errors.New("every upstream has been tried")
	// ErrEmpty: the pool has no upstreams.
	ErrEmpty = errors.New("no upstreams are known")
)

// Request is what Claim is asked for.
type Request struct {
	// Project is a hash of the project's identifier; 0 for none.
	Project  uint64
	Priority selection.Priority
	// Tried are the addresses that this job's earlier attempts went to.
	Tried []string
}

// Claim picks an upstream and counts the job there, in one step. The caller
// must end the lease with Done.
func (p *Pool) Claim(now time.Time, r Request) (*Lease, error) {
	if len(p.set) == 0 {
		return nil, ErrEmpty
	}
	job := p.job(now, r)
	panicking, err := p.filter(now, job, r.Tried)
	if err != nil {
		return nil, err
	}
	p.look(now, &job)
	for len(p.candidate) > 0 {
		i := p.cfg.Policy.Pick(job, p.views, p.cfg.Rand)
		m := p.candidate[i]
		verdict, ok := m.gate.Enter(now)
		if !ok && !panicking {
			p.views = slices.Delete(p.views, i, i+1)
			p.candidate = slices.Delete(p.candidate, i, i+1)
			continue
		}
		if !ok {
			verdict = func(time.Time, Verdict) {}
		}
		return p.lease(now, job, i, panicking, verdict), nil
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

// filter fills candidate with the eligible upstreams: not tried, not
// draining, not overloaded, breaker closed. When breakers alone keep out more
// than half of the pool they are ignored, for then the fault is more likely
// ours than theirs. When every upstream drains, draining is ignored.
func (p *Pool) filter(now time.Time, job selection.Job, tried []string) (panicking bool, err error) {
	open, draining := 0, 0
	for _, m := range p.set {
		if !m.gate.Ready(now) {
			open++
		}
		if m.Draining {
			draining++
		}
	}
	panicking = 2*open > len(p.set)
	service := draining == len(p.set)
	p.candidate = p.candidate[:0]
	untried := 0
	for _, m := range p.set {
		if slices.Contains(tried, m.Address) {
			continue
		}
		untried++
		if m.Draining && !service || !m.admits(job, now, &p.cfg) || !panicking && !m.gate.Ready(now) {
			continue
		}
		p.candidate = append(p.candidate, m)
	}
	switch {
	case untried == 0:
		return panicking, ErrAllTried
	case len(p.candidate) == 0:
		return panicking, ErrNoneEligible
	}
	return panicking, nil
}

// look fills views for the candidates.
func (p *Pool) look(now time.Time, job *selection.Job) {
	p.views = slices.Grow(p.views[:0], len(p.candidate))[:len(p.candidate)]
	busy, cores := 0.0, 0.0
	for i, m := range p.candidate {
		v := &p.views[i]
		m.view(v, job.Project, now, &p.cfg)
		busy += math.Min(v.Jobs, v.Cores)
		cores += v.Cores
	}
	job.Busy = busy / cores
}

// view fills v for a job of project at now.
func (m *member) view(v *selection.View, project uint64, now time.Time, cfg *Config) {
	fresh := m.fresh(now, cfg)
	cores := m.cores(cfg)
	high := m.present(selection.High, fresh)
	jobs := high + m.present(selection.Low, fresh)
	*v = selection.View{
		ID:          m.id,
		Weight:      m.Weight,
		Cores:       cores,
		FetchFactor: m.fetchFactor,
		InFlight:    float64(m.jobs()),
		Assigned:    float64(m.jobs()),
		Jobs:        jobs,
		JobsHigh:    high,
		Age:         math.Inf(1),
		Rate:        cores * m.rate.perCore(),
		Latency:     m.latency.value,
		IdleCPU:     math.Max(0, 1-jobs/cores),
		IdleIO:      1 / float64(1+m.cold),
		Uptime:      math.Inf(1),
		Left:        math.Inf(1),
	}
	if fresh {
		r := &m.report
		v.Age = now.Sub(r.At).Seconds()
		v.StalledHigh = r.Stalled[selection.High]
		v.Stalled = r.Stalled[selection.Low] + v.StalledHigh
		v.Assigned = r.Running[selection.Low] + r.Running[selection.High] + v.Stalled + float64(m.assigned)
		if r.CoresBusy >= 0 {
			v.IdleCPU = math.Max(0, 1-r.CoresBusy/cores)
		}
	}
	if v.Cache, v.FetchLeft = m.cache(project, now, cfg); v.Cache == selection.Cached {
		v.Warm = 1
	} else if v.Cache == selection.AssumedCached {
		v.Warm = 0.95
	}
	if up := cmpLater(m.StartedAt, m.joined); !up.IsZero() {
		v.Uptime = now.Sub(up).Seconds()
	}
	if !m.StopsAt.IsZero() {
		v.Left = m.StopsAt.Sub(now).Seconds()
	}
}

func cmpLater(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// lease counts the job at candidate i.
func (p *Pool) lease(now time.Time, job selection.Job, i int, panicking bool, verdict func(time.Time, Verdict)) *Lease {
	m, v := p.candidate[i], &p.views[i]
	l := &Lease{
		pool: p, member: m, job: job, claimed: now, verdict: verdict,
		Cache: v.Cache, Panic: panicking, idle: v.Jobs < v.Cores,
	}
	if c, ok := p.cfg.Policy.(selection.Coster); ok && p.cfg.Explain {
		p.costs = slices.Grow(p.costs[:0], len(p.views))[:len(p.views)]
		c.Costs(job, p.views, p.costs)
		l.Cost = p.costs[i]
	}
	p.number++
	p.inFlight++
	m.inFlight[job.Priority]++
	m.begun[job.Priority]++
	m.assigned++
	m.open.add(l)
	if job.Project != 0 && v.Cache == selection.NotCached {
		l.cold = true
		m.cold++
		m.assume(job.Project, now, job.Fetch*m.fetchFactor)
	}
	return l
}
