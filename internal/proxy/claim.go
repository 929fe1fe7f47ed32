package proxy

import (
	"context"
	"errors"
	"time"

	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
)

// attempts tries the job at one upstream after the other, until a response was
// passed on or no attempt may follow. The job's deadline, if it has one, bounds
// everything before the response begins. What is streamed has its own bounds, from
// the first byte.
func (x *exchange) attempts() error {
	var lost *failure // the attempt before
	var known lessons
	for {
		lease, now, err := x.claim()
		if err != nil {
			if errors.Is(err, pool.ErrAllTried) && lost != nil {
				err = lost.err
			}
			return x.exhausted(known, err)
		}
		if lost, err = x.attempt(lease, now, known.begun != nil); lost == nil {
			return err
		}
		x.withdrawal.Reset() // nothing is withdrawn between two attempts
		known.add(lost)
		if !lost.next.Again {
			x.record.RetryRefused = lost.next.OverBudget
			return x.exhausted(known, lost.err)
		}
		if err := x.pause(lost.next.Pause); err != nil {
			return x.exhausted(known, err)
		}
	}
}

// lessons are what the attempts of a job have shown that is still to be told
// when no other follows.
type lessons struct {
	refused *refusal // the last response that says that the job was not started
	begun   error    // of the last attempt that an upstream may have begun
}

func (l *lessons) add(lost *failure) {
	if lost.Progress == dispatch.Begun {
		l.begun = lost.err
	}
	if lost.refusal != nil {
		l.refused = lost.refusal
	}
}

// claim claims an upstream for the next attempt, which begins at now: when it was claimed. A
// place that was claimed before, for a job that is moved, is taken now.
func (x *exchange) claim() (lease *balancer.Lease, now time.Time, err error) {
	started := time.Now()
	lease, err = x.p.cfg.Claimer.Claim(x.r.Context(), started, x.job)
	if err != nil {
		x.record.Queued += time.Since(started)
		return nil, time.Time{}, err
	}
	if now = lease.Claimed; now.Before(started) {
		now = started
	}
	x.record.Queued += now.Sub(started)
	return lease, now, nil
}

// exhausted is the end of the attempts: the last response that an upstream
// refused the job with, if there is one, or else the reason why there is none.
// Where an upstream may have begun the job, that response is not passed on: the
// submitter would send the job again.
func (x *exchange) exhausted(known lessons, err error) error {
	switch {
	case x.r.Context().Err() != nil:
		return x.gone()
	case known.begun == nil && known.refused != nil:
		return known.refused.write(x)
	case x.job.Late(time.Now()):
		return record.ErrDeadline
	case known.begun != nil:
		return known.begun
	}
	return err
}

// pause waits before the next attempt, until the job's deadline at most.
func (x *exchange) pause(d time.Duration) error {
	if d == 0 {
		return nil
	}
	if at := x.job.Deadline; !at.IsZero() {
		d = min(d, time.Until(at))
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		if x.job.Late(time.Now()) {
			return record.ErrDeadline
		}
		return nil
	case <-x.r.Context().Done():
		return context.Cause(x.r.Context())
	}
}
