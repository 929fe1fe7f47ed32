package proxy

import (
	"context"
	"errors"
	"time"

	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/pool"
)

// attempts tries the job at one upstream after the other, until a response was
// passed on or no attempt may follow.
func (x *exchange) attempts(ctx context.Context) error {
	var lost *failure // the attempt before
	var known lessons
	for {
		lease, err := x.claim(ctx)
		if err != nil {
			if errors.Is(err, pool.ErrAllTried) && lost != nil {
				err = lost.err
			}
			return x.exhausted(ctx, known, err)
		}
		if lost, err = x.attempt(lease); lost == nil {
			return err
		}
		known.add(lost)
		if !lost.next.Again {
			x.record.RetryRefused = lost.next.OverBudget
			return x.exhausted(ctx, known, lost.err)
		}
		if err := pause(ctx, lost.next.Pause); err != nil {
			return x.exhausted(ctx, known, err)
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

// claim claims an upstream for the next attempt.
func (x *exchange) claim(ctx context.Context) (*balancer.Lease, error) {
	started := time.Now()
	x.withdrawal.Reset() // nothing is withdrawn between two attempts
	lease, err := x.p.cfg.Claimer.Claim(ctx, x.job)
	x.record.Queued += time.Since(started)
	return lease, err
}

// exhausted is the end of the attempts: the last response that an upstream
// refused the job with, if there is one, or else the reason why there is none.
// Where an upstream may have begun the job, that response is not passed on: the
// submitter would send the job again.
func (x *exchange) exhausted(ctx context.Context, known lessons, err error) error {
	switch {
	case x.r.Context().Err() != nil:
		return x.gone()
	case known.begun == nil && known.refused != nil:
		return known.refused.write(x)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case known.begun != nil:
		return known.begun
	}
	return err
}

// pause waits before the next attempt.
func pause(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
