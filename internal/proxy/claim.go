package proxy

import (
	"context"
	"errors"
	"time"

	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/pool"
)

// attempts tries the job at one upstream after the other, until a response was
// passed on or no attempt may follow.
func (x *exchange) attempts(ctx context.Context) error {
	var lost *failure    // the attempt before
	var refused *refusal // the last response that says that the job was not started
	for {
		lease, err := x.claim(ctx)
		if err != nil {
			if errors.Is(err, pool.ErrAllTried) && lost != nil {
				err = lost.err
			}
			return x.exhausted(ctx, refused, err)
		}
		if lost, err = x.attempt(lease); lost == nil {
			return err
		}
		if lost.refusal != nil {
			refused = lost.refusal
		}
		if !lost.next.Again {
			x.record.RetryRefused = lost.next.OverBudget
			return x.exhausted(ctx, refused, lost.err)
		}
		if err := pause(ctx, lost.next.Pause); err != nil {
			return x.exhausted(ctx, refused, err)
		}
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
func (x *exchange) exhausted(ctx context.Context, refused *refusal, err error) error {
	switch {
	case x.r.Context().Err() != nil:
		return x.gone()
	case refused != nil:
		return refused.write(x)
	case ctx.Err() != nil:
		return context.Cause(ctx)
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
