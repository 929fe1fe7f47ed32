package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"time"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
)

// answer is an upstream's answer that has begun. It holds its attempt's lease.
type answer struct {
	*http.Response
	ctx    context.Context // ended, with its cause, by what ends the streaming
	cancel context.CancelCauseFunc
}

// failure is an attempt that brought nothing to pass on. Its lease is ended
// by lost, which also says what comes next.
type failure struct {
	dispatch.Failure
	err  error
	next dispatch.Next
}

// attempt tries the job once at the upstream of x.lease.
func (x *exchange) attempt() (*answer, *failure) {
	u, err := target(x.r, x.lease.Address)
	if err != nil {
		return nil, x.lost(gone(err))
	}
	ctx, cancel := context.WithCancelCause(context.WithValue(x.r.Context(), connectTimeout{}, x.lease.ConnectTimeout))
	timer, left := x.bound(cancel)
	by := x.p.upstreams.kept
	if x.lease.Fresh {
		by = x.p.upstreams.fresh
	}
	res, how, err := x.send(ctx, u, by)
	if err != nil && how.stale() && !how.begun && ctx.Err() == nil && x.body.Replayable() {
		x.record.Attempt().Repeated = true
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
		return nil, x.lost(x.explain(ctx, how, left, err))
	}
	a := &answer{Response: res, ctx: ctx, cancel: cancel}
	if x.notStarted(a) {
		return nil, x.failure
	}
	return a, nil
}

// bound ends the attempt when it has no time left until an answer's head is there.
func (x *exchange) bound(cancel context.CancelCauseFunc) (timer *time.Timer, left time.Duration) {
	left, last := x.job.TimeLeft(time.Now())
	why := record.ErrFirstByte
	if last {
		why = record.ErrDeadline
	}
	return time.AfterFunc(left, func() { cancel(why) }), left
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
func (x *exchange) explain(ctx context.Context, how sent, left time.Duration, err error) *failure {
	f := &failure{Failure: dispatch.Failure{Outcome: pool.Refused, Stale: how.stale() && ctx.Err() == nil}}
	switch {
	case how.answered:
		f.Outcome, f.Progress = pool.Truncated, dispatch.Heard
	case how.inFull:
		f.Outcome, f.Progress = pool.NoAnswer, dispatch.Begun
	case how.begun:
		f.Progress = dispatch.Begun
	}
	var dial *dialError
	cause := context.Cause(ctx)
	switch {
	case x.r.Context().Err() != nil:
		return gone(x.gone())
	case x.body.Err() != nil:
		return gone(x.sendingFailed(x.body.Err()))
	case errors.Is(cause, record.ErrFirstByte), errors.Is(cause, record.ErrDeadline):
		f.Outcome, err = x.job.TimedOut(left), cause
	case errors.As(err, &dial):
		f.ConnectTimedOut = dial.timeout
	}
	f.err = fmt.Errorf("%w: %s: %w", record.ErrNoAnswer, x.lease.Address, err)
	return f
}

// gone is the failure of an attempt that the submitter's side ended.
func gone(err error) *failure {
	return &failure{Failure: dispatch.Failure{Outcome: pool.Gone}, err: err}
}

// lost ends the lease of an attempt that failed.
func (x *exchange) lost(f *failure) *failure {
	lease := x.lease
	x.lease = nil
	x.record.Settle(f.Outcome, f.err)
	f.Repeatable = x.body.Replayable()
	f.next = lease.Failed(f.Failure)
	return f
}
