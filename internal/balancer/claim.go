package balancer

import (
	"context"
	"errors"
	"time"

	"example.org/pilotfish/internal/dispatch"
)

// Claim claims an upstream for a job's next attempt. While no upstream is eligible, the
// job is queued and Claim blocks. The caller must end the lease with Done or Failed.
//
// Errors are: the error of ctx; context.DeadlineExceeded if the job's deadline passed;
// dispatch.ErrWaited if the queue timeout passed; dispatch.ErrAtLimit if the queue timeout
// passed because of the project's limit; dispatch.ErrFull or dispatch.ErrDisplaced if the
// queue is full; and pool.ErrAllTried, at once, if the job has tried every upstream.
func (b *Balancer) Claim(ctx context.Context, now time.Time, j *dispatch.Job) (*Lease, error) {
	if b.hooks.Probe != nil {
		now = b.probe(ctx, now, j)
	}
	now = b.lock(now)
	held := true
	defer func() {
		if held {
			b.unlock()
		}
	}()
	g, granted := b.dispatch.Arrive(now, j)
	if !granted {
		grants := make(chan dispatch.Grant, 1)
		b.waiting[j] = grants
		b.serve(now)
		held = false
		b.unlock()
		g = b.wait(ctx, now, j, grants)
		b.mu.Lock()
		held = true
	}
	return b.lease(&g), g.Err
}

// probe has the upstreams probed to which the job may go, if that pays, and returns the time after that. No lock is held
// while the requests run.
func (b *Balancer) probe(ctx context.Context, now time.Time, j *dispatch.Job) time.Time {
	var addresses []string
	var timeout time.Duration
	b.locked(now, func(now time.Time) { addresses, timeout = b.dispatch.Probes(now, j) })
	if len(addresses) == 0 {
		return now
	}
	project := j.Name
	if j.Data != nil {
		project = ""
	}
	loads := b.hooks.Probe(ctx, addresses, project, timeout)
	if ctx.Err() != nil { // that is no failure of the upstreams
		return time.Now()
	}
	b.event(time.Now(), func(at time.Time) {
		now = at
		for i, address := range addresses {
			b.dispatch.Probed(at, j, address, loads[i])
		}
	})
	return now
}

// wait blocks until the job receives a grant or must be given up.
func (b *Balancer) wait(ctx context.Context, now time.Time, j *dispatch.Job, grants <-chan dispatch.Grant) dispatch.Grant {
	select {
	case b.wake <- struct{}{}:
	default:
	}
	if b.hooks.Queued != nil {
		b.hooks.Queued(j.Priority)
	}
	if b.hooks.Left != nil {
		defer func() { b.hooks.Left(j.Priority, time.Since(now)) }()
	}
	until, why := j.GiveUpAt(), dispatch.ErrWaited
	if !j.Deadline.IsZero() && j.Deadline.Before(until) {
		until, why = j.Deadline, context.DeadlineExceeded
	}
	timer := time.NewTimer(until.Sub(now))
	defer timer.Stop()
	select {
	case g := <-grants:
		return g
	case <-ctx.Done():
		return b.giveUp(j, grants, ctx.Err())
	case <-timer.C:
		return b.giveUp(j, grants, why)
	}
}

// giveUp removes a job from the queue. If the job has received a grant in between, the
// grant is used, unless the submitter disconnected or the job's deadline passed.
func (b *Balancer) giveUp(j *dispatch.Job, grants <-chan dispatch.Grant, why error) dispatch.Grant {
	keep := errors.Is(why, dispatch.ErrWaited)
	now, waited, why := b.takeOut(j, keep, why)
	if !waited {
		g := <-grants
		if g.Err != nil || keep {
			return g
		}
		b.event(now, func(now time.Time) {
			g.Assignment.Cancel(now)
			b.dispatch.CancelMove(now, j) // the job may have been moved since
		})
	}
	return dispatch.Grant{Err: why}
}

// Dismiss ends the waits of all queued jobs with this error, if no upstream is known.
func (b *Balancer) Dismiss(why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pool.Len() > 0 {
		return
	}
	for j, grants := range b.waiting {
		b.dispatch.GiveUp(j)
		grants <- dispatch.Grant{Err: why} // does not block: the channel has capacity 1
		delete(b.waiting, j)
	}
}

// takeOut removes a job from the queue and reports whether it was there. If known is true, it replaces why by the reason of the wait.
func (b *Balancer) takeOut(j *dispatch.Job, known bool, why error) (now time.Time, waited bool, _ error) {
	now = b.lock(time.Now())
	defer b.mu.Unlock()
	if known {
		why = b.dispatch.Waited(now, j)
	}
	delete(b.waiting, j)
	return now, b.dispatch.GiveUp(j), why
}
