package proxy

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/proxy/upstreamclient"
	"example.org/pilotfish/internal/record"
)

// Bounds of the body of a response that is kept while the job is tried elsewhere. A longer one
// is passed on instead, one that takes longer is lost.
const (
	maxRefusal  = 64 << 10
	refusalTime = time.Second
)

// attempt is one try at one upstream, from the claim of its lease on.
type attempt struct {
	x       *exchange
	request upstreamclient.Request
	left    time.Duration // from its beginning until a response must begin
	last    bool          // then the job's time is over
}

// errMoved is why an attempt was withdrawn.
var errMoved = fmt.Errorf("%w: the job waited there and was moved to another upstream", record.ErrNoAnswer)

// failure is an attempt that brought no response to pass on.
type failure struct {
	dispatch.Failure
	err     error
	refusal *refusal // the response, to be passed on if no other upstream does better
	next    dispatch.Next
}

// refusal is an upstream's whole response that says that it did not start the
// job, or an unwanted one. It is passed on only if no other upstream does better.
type refusal struct {
	done     bool                     // the upstream has done the job
	response *upstreamclient.Response // read to its end, and closed
	body     []byte
}

// attempt tries the job once, from now on, and passes the response on if there is one to
// pass on. The error is then the job's. begun: an upstream may have begun the job before.
func (x *exchange) attempt(now time.Time, begun bool) (*failure, error) {
	a := x.newAttempt(now)
	response, how, err := x.p.upstreams.Do(x.r.Context(), &a.request)
	if err != nil {
		return a.lost(a.explain(how, err)), nil
	}
	if x.reserve(response.HeadMemory) != nil {
		response.Close()
		return a.lost(a.explain(how, errHead)), nil
	}
	return a.receive(response, how, begun)
}

// newAttempt begins an attempt at now.
func (x *exchange) newAttempt(now time.Time) *attempt {
	x.under = attempt{x: x}
	a, lease := &x.under, x.book.Lease
	x.book.Expect(x.header, x.header)
	a.left, a.last = x.book.Job.TimeLeft(now)
	a.request = upstreamclient.Request{
		Address: lease.Address, Host: x.r.Host, Method: x.r.Method, Target: x.target,
		Header: x.header, Fresh: lease.Fresh, ConnectTimeout: lease.ConnectTimeout, Deadline: now.Add(a.left),
		Withdrawal: &x.withdrawal, Interim: a,
	}
	if x.body.Whole() {
		a.request.Whole = x.body.Bytes()
	} else {
		a.request.Body, a.request.Length = x.body.NewReader(), x.body.Len()
	}
	return a
}

// receive passes a response on, or keeps it if it says that the job was not started, or is unwanted.
func (a *attempt) receive(response *upstreamclient.Response, how upstreamclient.Progress, begun bool) (*failure, error) {
	defer response.Close()
	status, address := response.StatusCode, a.x.book.Lease.Address
	switch {
	case status < 200:
		return a.lost(a.explain(how, fmt.Errorf("an answer with status %d, which nobody asked for", status))), nil
	case record.NotStarted(status, response.Header), begun && record.Limited(status, response.Header):
		return a.refused(response, begun, &failure{
			Failure: dispatch.Failure{Outcome: pool.NotStarted, Progress: dispatch.Heard},
			err:     fmt.Errorf("%w: %s did not start the job", record.ErrNoAnswer, address),
		})
	case a.x.book.Job.Unwanted(status):
		return a.refused(response, begun, &failure{
			Failure: dispatch.Failure{Outcome: pool.Failed, Progress: dispatch.Heard},
			err:     fmt.Errorf("%w: %s answered %d, and retry.on has that", record.ErrNoAnswer, address, status),
		})
	}
	return nil, a.pass(response, nil)
}

// refused ends an attempt with a response that is passed on only if no other upstream does better, or if it is
// too long to be kept. One that says that the job was not started is not passed on where another upstream
// may have begun it: the submitter would send it again.
func (a *attempt) refused(response *upstreamclient.Response, begun bool, f *failure) (*failure, error) {
	a.x.book.Hint(time.Now(), response.Header)
	done := f.Outcome == pool.Failed
	if a.lost(f); done && !f.next.Again {
		return nil, a.pass(response, nil)
	}
	response.Until = time.Now().Add(refusalTime)
	body, err := io.ReadAll(io.LimitReader(response, maxRefusal+1))
	switch {
	case err != nil:
	case len(body) <= maxRefusal:
		f.refusal = &refusal{done, response, body}
	case done || !begun:
		return nil, a.pass(response, body)
	}
	return f, nil
}

// Interim takes a 1xx.
func (a *attempt) Interim(status int, h http.Header) { a.x.interim(a.request.Deadline, status, h) }

// errHead is no intake.ErrNoRoom: the upstream has done the job.
var errHead = errors.New("the heads and bodies of other jobs take all the memory for the head of its answer")

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
		f := gone(record.Gone(a.x.r.Context()))
		if how.Begun {
			f.Progress = dispatch.Begun
		}
		return f
	case errors.Is(err, upstreamclient.ErrRequest):
		return gone(fmt.Errorf("%w: %w", record.ErrRequest, err))
	case errors.As(err, &body) && errors.Is(body.Err, intake.ErrSpent): // by an attempt before
		return gone(fmt.Errorf("%w: %s: %w", record.ErrNoAnswer, a.x.book.Lease.Address, body.Err))
	case errors.As(err, &body):
		return gone(a.x.sendingFailed(body.Err))
	}
	f := &failure{
		Failure: dispatch.Failure{Outcome: pool.Refused, Progress: progress(how), Stale: how.Stale()},
		err:     fmt.Errorf("%w: %s: %w", record.ErrNoAnswer, a.x.book.Lease.Address, err),
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
		Failure: dispatch.Failure{Outcome: a.x.book.Job.TimedOut(a.left), Progress: progress(how)},
		err:     fmt.Errorf("%w: %s: %w", record.ErrNoAnswer, a.x.book.Lease.Address, why),
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
	f.Repeatable = a.x.body.Replayable()
	f.next = a.x.book.Failed(f.Failure, f.err)
	return f
}
