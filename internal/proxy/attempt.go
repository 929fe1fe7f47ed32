package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"time"

	"pilotfish/internal/pool"
)

var (
	errNoAnswer  = errors.New("no upstream answered")
	errFirstByte = errors.New("no answer began in time")
	errDeadline  = errors.New("the job's deadline passed")
)

// answer is an upstream's answer that has begun. It holds its attempt's lease.
type answer struct {
	*http.Response
	ctx    context.Context // ended, with its cause, by what ends the streaming
	cancel context.CancelCauseFunc
}

// failure is an attempt that brought nothing to pass on. Its lease is ended.
type failure struct {
	err       error
	outcome   pool.Outcome
	rule      rule
	noConnect bool // the dial took too long
}

// attempt tries the job once at the upstream of x.lease.
func (x *exchange) attempt() (*answer, *failure) {
	u, err := target(x.r, x.lease.Address)
	if err != nil {
		return nil, x.lost(&failure{err: err, outcome: pool.Gone})
	}
	ctx, cancel := context.WithCancelCause(context.WithValue(x.r.Context(), connectTimeout{}, x.connect))
	timer, given := x.bound(cancel)
	res, how, err := x.send(ctx, u, x.p.upstreams.kept)
	if err != nil && x.stale(ctx, how) {
		x.record.attempt().Repeated = true
		x.spent = x.spent || how.begun
		res, how, err = x.send(ctx, u, x.p.upstreams.fresh)
	}
	if !timer.Stop() && err == nil && ctx.Err() != nil { // the answer came as the time ended
		_ = res.Body.Close()
		err = context.Cause(ctx)
	}
	if err == nil && (res.StatusCode < 200) {
		_ = res.Body.Close()
		err = fmt.Errorf("an answer with status %d, which nobody asked for", res.StatusCode)
	}
	if err != nil {
		defer cancel(nil)
		return nil, x.lost(x.explain(ctx, how, given, err))
	}
	a := &answer{Response: res, ctx: ctx, cancel: cancel}
	if x.notStarted(a) {
		return nil, x.failure
	}
	return a, nil
}

// bound gives the attempt its time: until an answer's head is there, it may
// take that of the job, and no longer than the job's deadline. given is what it got.
func (x *exchange) bound(cancel context.CancelCauseFunc) (timer *time.Timer, given time.Duration) {
	why := errFirstByte
	given = x.firstByte
	if left := time.Until(x.deadline); !x.deadline.IsZero() && left < given {
		why, given = errDeadline, left
	}
	return time.AfterFunc(given, func() { cancel(why) }), given
}

// send sends the request and waits for the head of an answer.
func (x *exchange) send(ctx context.Context, u *url.URL, by http.RoundTripper) (*http.Response, sent, error) {
	s := sending{interim: x.interim}
	out := x.request(u).WithContext(httptrace.WithClientTrace(ctx, s.trace()))
	res, err := by.RoundTrip(out)
	return res, s.end(), err
}

// stale reports whether a kept connection was closed just as the job was
// sent: that says nothing about the upstream, so the job is sent there again,
// on a new connection. If some of it was sent, it may have been begun, and
// that was its one retry of this kind.
func (x *exchange) stale(ctx context.Context, how sent) bool {
	return how.reused && !how.answered && ctx.Err() == nil && x.body.Replayable() && (!how.begun || !x.spent)
}

// explain says what an attempt's failure means.
func (x *exchange) explain(ctx context.Context, how sent, given time.Duration, err error) *failure {
	f := &failure{outcome: pool.Refused, rule: always}
	switch {
	case how.answered:
		f.outcome, f.rule = pool.Truncated, never
	case how.inFull:
		f.outcome, f.rule = pool.NoAnswer, once
	case how.begun:
		f.rule = once
	}
	var dial *dialError
	cause := context.Cause(ctx)
	switch {
	case x.r.Context().Err() != nil:
		return &failure{err: x.gone(), outcome: pool.Gone}
	case x.body.Err() != nil:
		return &failure{err: x.sendingFailed(x.body.Err()), outcome: pool.Gone}
	case errors.Is(cause, errFirstByte):
		f.outcome, err = pool.TimedOut, cause
	case errors.Is(cause, errDeadline):
		f.outcome, f.rule, err = pool.TimedOut, never, cause
		if given < x.firstByte/2 {
			f.outcome = pool.Gone // too short a time to speak against the upstream
		}
	case errors.As(err, &dial):
		f.noConnect = dial.timeout
	}
	f.err = fmt.Errorf("%w: %s: %w", errNoAnswer, x.lease.Address, err)
	return f
}

// lost ends the lease of an attempt that failed.
func (x *exchange) lost(f *failure) *failure {
	x.settle(f.outcome, f.err)
	return f
}
