package dispatch

import (
	"errors"
	"fmt"
	"time"

	"example.org/pilotfish/internal/pool"
)

// Arrive claims an upstream for a job's next attempt. If granted is false, the
// job is queued until Job.GiveUpAt. The caller then calls Serve, which returns the
// jobs that this job displaced from the queue.
//
// A job does not overtake queued jobs, except jobs held by their project's limit.
// Some jobs are never queued and get an error at once: a job that has tried every
// upstream, a job restricted to upstreams that are all ineligible (Request.Among),
// and a prefetch.
func (d *Dispatcher) Arrive(now time.Time, j *Job) (g Grant, granted bool) {
	switch j.state {
	case moving, asking:
		to := j.to
		j.tried.Add(to.Address)
		j.to, j.state = nil, claimed
		return Grant{Job: j, Assignment: to, ConnectTimeout: j.retries.connect}, true
	case begun:
		if !j.Prefetch { // no retry follows
			d.budget.job(now)
		}
		if err := d.rate(now, j); err != nil {
			return j.refuse(err), true
		}
	}
	j.heavy = d.pool.Heavy(j.request())
	l := limit{now: now}
	if d.pool.AllTried(now, d.tried(now, j), j.heavy) || j.among != nil || d.first(&l, j) {
		if g, result := d.claim(&l, j); result == served {
			return g, true
		}
	}
	return d.enqueue(&l, j)
}

// Probes returns the upstreams to probe before Arrive is called, and how long the probes can take. There are none if the
// job has an upstream already, or will wait in the queue.
func (d *Dispatcher) Probes(now time.Time, j *Job) (addresses []string, timeout time.Duration) {
	if j.to != nil || d.queue.len() > 0 {
		return nil, 0
	}
	return d.pool.Probes(now, j.request(), d.tried(now, j))
}

// Probed takes the result of a probe for a job into account; load is nil if the probe failed.
func (d *Dispatcher) Probed(now time.Time, j *Job, address string, load *pool.Hint) {
	project := j.Project
	if j.Data != nil {
		project = 0
	}
	d.pool.Probed(now, address, project, load)
}

// enqueue adds the job to the queue, or returns a Grant with the error that prevents it.
func (d *Dispatcher) enqueue(l *limit, j *Job) (g Grant, granted bool) {
	if j.among != nil || j.Prefetch {
		err := pool.ErrBusy
		if j.among != nil {
			err = fmt.Errorf("%w of the %d to which the job is restricted", pool.ErrNoneEligible, j.among.Len())
		}
		if d.held(l, j) {
			err = d.errAtLimit()
		}
		return j.refuse(err), true
	}
	if err := d.lag(l, j); err != nil {
		return j.refuse(err), true
	}
	displaced, ok := d.queue.push(l.now, j)
	if !ok {
		return j.refuse(fmt.Errorf("%w (%d)", ErrFull, d.queue.len())), true
	}
	for _, out := range displaced {
		d.shed = append(d.shed, out.refuse(ErrDisplaced))
	}
	j.state = waiting
	j.wait.since, j.wait.until = l.now, l.now.Add(max(d.patience(j)-j.wait.total, 0))
	return Grant{}, false
}

// Serve tries to claim an upstream for each queued job, in order, and returns the
// jobs that left the queue. The caller calls it after every event that may have made
// an upstream eligible.
func (d *Dispatcher) Serve(now time.Time) []Grant {
	over := d.shed
	d.shed = nil
	if d.queue.len() == 0 {
		return over
	}
	l, openings := limit{now: now}, (*pool.Openings)(nil) // nil until a claim fails, and after a grant
	d.queue.serve(func(j *Job) claimResult {
		if d.held(&l, j) {
			return atLimit
		}
		if openings != nil {
			tried := d.tried(now, j)
			if openings.Refuse(j.request(), tried) && !d.pool.AllTried(now, tried, j.heavy) {
				return unserved(tried.Len() == 0 && openings.None())
			}
		}
		g, result := d.claim(&l, j)
		switch {
		case result == served:
			l, openings = limit{now: now}, nil
			j.wait.total += now.Sub(j.wait.since)
			over = append(over, g)
		case openings == nil:
			openings = d.pool.Openings(now)
		}
		return result
	})
	return over
}

// unserved is the result for a job that gets no upstream. all is set if no job would get one.
func unserved(all bool) claimResult {
	if all {
		return noneEligible
	}
	return passedOver
}

// GiveUp removes a job from the queue and reports whether it was there. If it was not,
// Serve has already returned a Grant for it, which the caller must handle.
func (d *Dispatcher) GiveUp(j *Job) bool {
	if !d.queue.remove(j) {
		return false
	}
	j.state = ended
	return true
}

// claim claims an upstream for j from the pool.
func (d *Dispatcher) claim(l *limit, j *Job) (Grant, claimResult) {
	if d.held(l, j) {
		return Grant{}, passedOver
	}
	tried := d.tried(l.now, j)
	r := j.request()
	if j.Fallbacks {
		r.Fallbacks = d.retry.Attempts - 1
	}
	if j.Withdraw != nil {
		r.Waiter = j
	}
	a, err := d.pool.Claim(l.now, r, tried)
	switch {
	case err == nil:
		j.state = claimed
		j.tried.Add(a.Address)
		j.attempt.sent, j.attempt.panicked = l.now, a.Panic
		if of := d.queue.backlogs[j.Project]; of != nil {
			of.grant(l.now)
		}
		return Grant{Job: j, Assignment: a, ConnectTimeout: j.retries.connect, Fresh: j.attempt.stale}, served
	case errors.Is(err, pool.ErrAllTried):
		return j.refuse(err), served
	case errors.Is(err, pool.ErrNotAdmitted), tried.Len() > 0:
		return Grant{}, passedOver
	}
	return Grant{}, noneEligible
}
