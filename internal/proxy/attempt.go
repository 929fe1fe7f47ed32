package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"time"

	"example.org/pilotfish/internal/pool"
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
	stale     bool // it was on a kept connection, which may have been closed as the job was sent
}

// attempt tries the job once at the upstream of x.lease.
func (x *exchange) attempt() (*answer, *failure) {
	u, err := target(x.r, x.lease.Address)
	if err != nil {
		return nil, x.lost(&failure{err: err, outcome: pool.Gone})
	}
	ctx, cancel := context.WithCancelCause(context.WithValue(x.r.Context(), connectTimeout{}, x.connect))
	timer, given := x.bound(cancel)
	by := x.p.upstreams.kept
	if x.again {
		by = x.p.upstreams.fresh
	}
	res, how, err := x.send(ctx, u, by)
	if err != nil && how.stale() && !how.begun && ctx.Err() == nil && x.body.Replayable() {
		x.record.attempt().Repeated = true
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
	how := s.end()
	if how.excess {
		if err == nil {
			_ = res.Body.Close()
		}
		return nil, how, errExcess
	}
	return res, how, err
}

// explain says what an attempt's failure means.
func (x *exchange) explain(ctx context.Context, how sent, given time.Duration, err error) *failure {
	f := &failure{outcome: pool.Refused, rule: always, stale: how.stale() && ctx.Err() == nil}
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
