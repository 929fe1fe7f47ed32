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
	case moving, withdrawing:
		to := j.to
		j.to = nil
		return j.sendTo(now, to), true
	case begun:
		if !j.Prefetch { // no retry follows
			d.budget.job(now)
		}
		if err := d.rate(now, j); err != nil {
			return j.refuse(err), true
		}
	}
	j.heavy = d.pool.IsHeavy(j.request())
	l := limit{now: now}
	if d.pool.AllTried(now, d.tried(now, j), j.heavy) || j.among != nil || d.canGoFirst(&l, j) {
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
		if d.isHeld(l, j) {
			err = d.errAtLimit()
		}
		return j.refuse(err), true
	}
	if err := d.refuseIfTooSlow(l, j); err != nil {
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
	j.wait.since, j.wait.until = l.now, l.now.Add(max(d.queueTimeout(j)-j.wait.total, 0))
	return Grant{}, false
}

// Serve tries to claim an upstream for each queued job, in order, and returns the jobs that left the queue. The caller calls
// it, or ServeSome until nothing is left, after every event that can make an upstream eligible.
func (d *Dispatcher) Serve(now time.Time) (all []Grant) {
	for more := true; more; {
		var some []Grant
		some, more = d.ServeSome(now)
		all = append(all, some...)
	}
	return all
}

// serveWork bounds the work of ServeSome, about 5 ms: grantWork for each grant, and 1 for each upstream that a search considers.
const serveWork, grantWork = 1 << 17, 256

// ServeSome does a bounded part of the work of Serve, so that the caller can release its lock between two parts. If it reports
// that more is left to do, it has granted at least one job.
func (d *Dispatcher) ServeSome(now time.Time) (over []Grant, more bool) {
	over, d.shed = d.shed, nil
	if d.queue.len() == 0 {
		return over, false
	}
	l, openings, work, granted := limit{now: now}, [2]*pool.Openings{}, serveWork, 0 // openings are nil until a claim fails
	d.queue.serve(func(j *Job) claimResult {
		if more = work <= 0 && granted > 0; more {
			return enough
		}
		if d.isHeld(&l, j) {
			return atLimit
		}
		of := &openings[0]
		if j.heavy {
			of = &openings[1]
		}
		if *of != nil {
			tried := d.tried(now, j)
			if (*of).Refuses(j.request(), tried) && !d.pool.AllTried(now, tried, j.heavy) {
				if tried.Len() == 0 && (*of).NoneAdmits() {
					return noneEligible
				}
				return passedOver
			}
		}
		g, result := d.claim(&l, j)
		switch {
		case result == served:
			work -= grantWork
			if l.known {
				work -= d.pool.Len()
			}
			if l = (limit{now: now}); g.Assignment != nil && g.Assignment.ChangesOpenings(now) {
				openings = [2]*pool.Openings{}
			}
			j.wait.total += now.Sub(j.wait.since)
			over = append(over, g)
			granted++
		default:
			work -= d.pool.Len()
			if *of == nil {
				*of = d.pool.Openings(now, j.heavy)
			}
		}
		return result
	})
	return over, more
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
	if d.isHeld(l, j) {
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
		if of := d.queue.backlogs[j.Project]; of != nil {
			of.grant(l.now)
		}
		return j.sendTo(l.now, a), served
	case errors.Is(err, pool.ErrAllTried):
		return j.refuse(err), served
	case errors.Is(err, pool.ErrNotAdmitted), tried.Len() > 0:
		return Grant{}, passedOver
	}
	return Grant{}, noneEligible
}
