package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/proxy/upstreamclient"
	"example.org/pilotfish/internal/record"
)

// attempt is one try at one upstream. It owns its lease, which ends once: by
// done or lost, or by abandon when a panic passes.
type attempt struct {
	x       *exchange
	lease   *balancer.Lease
	request upstreamclient.Request
	left    time.Duration // from its beginning until a response must begin
	last    bool          // then the job's time is over
	ended   bool
}

// errMoved is why an attempt was withdrawn.
var errMoved = errors.New("the job waited there and was moved to another upstream")

// failure is an attempt that brought no response to pass on.
type failure struct {
	dispatch.Failure
	err     error
	refusal *refusal // the response of an upstream that says that it did not start the job
	next    dispatch.Next
}

// attempt tries the job once, from now on, and passes the response on if there is one to
// pass on. The error is then the job's. begun: an upstream may have begun the job before.
func (x *exchange) attempt(lease *balancer.Lease, now time.Time, begun bool) (*failure, error) {
	a := x.newAttempt(lease, now)
	defer a.abandon()
	response, how, err := x.p.upstreams.Do(x.r.Context(), &a.request)
	if err != nil && a.mayRepeat(how, err) {
		a.renew()
		response, how, err = x.p.upstreams.Do(x.r.Context(), &a.request)
	}
	if err != nil {
		return a.lost(a.explain(how, err)), nil
	}
	failed, err := a.receive(response, how, begun)
	if failed != nil {
		return a.lost(failed), nil
	}
	return nil, err
}

// newAttempt begins an attempt at now.
func (x *exchange) newAttempt(lease *balancer.Lease, now time.Time) *attempt {
	x.record.Begin(now, *lease.Choice)
	a := &attempt{x: x, lease: lease}
	a.left, a.last = x.job.TimeLeft(now)
	a.request = upstreamclient.Request{
		Address: lease.Address, Host: x.r.Host, Method: x.r.Method, Target: x.target,
		Header: x.header, Trailer: x.r.Trailer, // trailers follow a chunked body only
		Fresh: lease.Fresh, ConnectTimeout: lease.ConnectTimeout, Deadline: now.Add(a.left),
		Withdrawal: &x.withdrawal, Interim: a,
	}
	a.setBody()
	return a
}

// setBody makes the request send the body from its beginning.
func (a *attempt) setBody() {
	body := a.x.body
	if body.Whole() {
		a.request.Whole = body.Bytes()
	} else {
		a.request.Body, a.request.Length = body.NewReader(), body.Len()
	}
}

// mayRepeat reports whether a job that was not sent may go to the same upstream at
// once, on a new connection.
func (a *attempt) mayRepeat(how upstreamclient.Progress, err error) bool {
	return how.Stale() && !how.Begun && !errors.Is(err, upstreamclient.ErrDeadline) && !errors.Is(err, upstreamclient.ErrWithdrawn)
}

// renew makes the attempt one on a new connection.
func (a *attempt) renew() {
	a.x.record.Attempt().Repeated = true
	a.request.Fresh = true
	a.setBody()
}

// receive passes a response on, or keeps it if it says that the job was not
// started. One that is too long to be kept is passed on all the same, and so is a 429; but
// not where an upstream may have begun the job: the submitter would send it again.
func (a *attempt) receive(response *upstreamclient.Response, how upstreamclient.Progress, begun bool) (*failure, error) {
	defer response.Close()
	if response.StatusCode < 200 {
		return a.explain(how, fmt.Errorf("an answer with status %d, which nobody asked for", response.StatusCode)), nil
	}
	limited := begun && record.Limited(response.StatusCode, response.Header)
	if !limited && !record.NotStarted(response.StatusCode, response.Header) {
		return nil, a.pass(response, nil)
	}
	now := time.Now()
	left, _ := a.x.job.TimeLeft(now)
	refused, err := readRefusal(response, now.Add(left))
	if len(refused.body) > maxRefusal && !begun {
		return nil, a.pass(response, refused.body)
	}
	a.x.hint(time.Now(), response.Header)
	failed := &failure{
		Failure: dispatch.Failure{Outcome: pool.NotStarted, Progress: dispatch.Heard},
		err:     fmt.Errorf("%w: %s did not start the job", record.ErrNoAnswer, a.lease.Address),
	}
	if err == nil {
		failed.refusal = refused
	}
	return failed, nil
}

// Interim takes a 1xx. The submitter does not get one that it has not asked for.
func (a *attempt) Interim(status int, h http.Header) {
	begun := h.Get("Job-Started") == "yes"
	a.lease.Interim(time.Now(), begun)
	if !begun || !a.x.quiet {
		a.x.interim(status, h)
	}
}

// explain says what an attempt's failure means.
func (a *attempt) explain(how upstreamclient.Progress, err error) *failure {
	var (
		body *upstreamclient.BodyError
		dial *upstreamclient.DialError
	)
	switch {
	case errors.Is(err, upstreamclient.ErrDeadline):
		return a.late(how)
	case errors.Is(err, upstreamclient.ErrWithdrawn):
		return &failure{Failure: dispatch.Failure{Outcome: pool.Moved, Progress: progress(how)}, err: errMoved}
	case a.x.r.Context().Err() != nil:
		return gone(a.x.gone())
	case errors.Is(err, upstreamclient.ErrRequest):
		return gone(fmt.Errorf("%w: %w", errRequest, err))
	case errors.As(err, &body) && errors.Is(body.Err, intake.ErrSpent): // by an attempt before
		return gone(fmt.Errorf("%w: %s: %w", record.ErrNoAnswer, a.lease.Address, body.Err))
	case errors.As(err, &body):
		return gone(a.x.sendingFailed(body.Err))
	}
	f := &failure{
		Failure: dispatch.Failure{Outcome: pool.Refused, Progress: progress(how), Stale: how.Stale()},
		err:     fmt.Errorf("%w: %s: %w", record.ErrNoAnswer, a.lease.Address, err),
	}
	switch {
	case how.Answered:
		f.Outcome = pool.Truncated
	case how.InFull:
		f.Outcome = pool.NoAnswer
	case errors.As(err, &dial):
		f.ConnectTimedOut = dial.Timeout
	}
	return f
}

// late is the failure of an attempt whose time was over.
func (a *attempt) late(how upstreamclient.Progress) *failure {
	why := record.ErrFirstByte
	if a.last {
		why = record.ErrDeadline
	}
	return &failure{
		Failure: dispatch.Failure{Outcome: a.x.job.TimedOut(a.left), Progress: progress(how)},
		err:     fmt.Errorf("%w: %s: %w", record.ErrNoAnswer, a.lease.Address, why),
	}
}

// progress is how far the job came, as far as retries ask.
func progress(how upstreamclient.Progress) dispatch.Progress {
	switch {
	case how.Answered:
		return dispatch.Heard
	case how.Begun:
		return dispatch.Begun
	}
	return dispatch.Unsent
}

// gone is the failure of an attempt that the submitter's side ended.
func gone(err error) *failure {
	return &failure{Failure: dispatch.Failure{Outcome: pool.Gone}, err: err}
}

// lost ends an attempt that failed, and decides what follows.
func (a *attempt) lost(f *failure) *failure {
	a.ended = true
	now := time.Now()
	a.x.record.EndAttempt(now, f.Outcome, f.err)
	f.Repeatable = a.x.body.Replayable()
	f.next = a.lease.Failed(now, f.Failure)
	return f
}

// done ends an attempt whose response was passed on, as much of it as could be.
func (a *attempt) done(o pool.Outcome, err error) {
	a.ended = true
	now := time.Now()
	a.x.record.EndAttempt(now, o, err)
	a.lease.Done(now, o)
}

// abandon ends an attempt that a panic ended.
func (a *attempt) abandon() {
	if !a.ended {
		a.done(pool.Gone, nil)
	}
}
