package proxy

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"syscall"
	"time"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/proxy/http1"
	"example.org/pilotfish/internal/proxy/upstreamclient"
	"example.org/pilotfish/internal/record"
)

// Bounds of the body of a response that is kept while the job is tried elsewhere. A longer body
// is passed on instead; one that takes longer is lost.
const (
	maxRefusal  = 64 << 10
	refusalTime = time.Second
)

// verdict is what one attempt means for its job.
type verdict struct {
	kind     verdictKind
	response *upstreamclient.Response // to pass, and still open; or kept, and closed
	body     []byte                   // what was read of it: all, if it is kept

	// Of an attempt whose response is kept, and of a lost one:
	dispatch.Failure
	err  error
	next dispatch.Next
}

type verdictKind uint8

const (
	// lost, the zero value: there is no response that the submitter could get.
	_ verdictKind = iota
	// keep: the submitter gets the response if no later attempt brings a better one.
	keep
	// pass: the submitter gets the response.
	pass
)

// done reports whether the upstream of a kept response has done the job. Otherwise it
// says that it did not start it.
func (v *verdict) done() bool { return v.Outcome == pool.Failed }

// errMoved is why an attempt was withdrawn.
var errMoved = fmt.Errorf("%w: the job waited there and was moved to another upstream", record.ErrNoAnswer)

// attempt tries the job once, from now on. begun: an upstream may have begun the job in
// an earlier attempt.
func (x *exchange) attempt(now time.Time, begun bool) *verdict {
	left, _ := x.book.Job.TimeLeft(now)
	x.prepare(now.Add(left))
	response, how, err := x.p.upstreams.Do(x.r.Context(), &x.request)
	if err == nil && x.reserve(response.HeadMemory) != nil {
		response.Close()
		err = errHead
	}
	if errors.Is(err, upstreamclient.ErrDeadline) {
		return x.lost(x.late(how))
	}
	if err != nil {
		return x.lost(x.explain(how, err))
	}
	return x.receive(response, how, begun)
}

// prepare makes the request of an attempt, whose response must begin by deadline, unless the body takes long to send.
func (x *exchange) prepare(deadline time.Time) {
	lease := x.book.Lease
	x.book.Expect(x.header, x.header)
	x.request = upstreamclient.Request{
		Address: lease.Address, Host: x.r.Host, Method: x.r.Method, Target: x.target,
		Header: x.header, Fresh: lease.Fresh, ConnectTimeout: lease.ConnectTimeout, Deadline: deadline,
		FirstByte: x.book.Job.FirstByte, Limit: x.book.Job.Deadline,
		Withdrawal: &x.withdrawal, Interim: x,
	}
	if w, ok := x.w.(verbatim); ok {
		x.request.Received = w.Received()
	}
	if x.body.Whole() {
		x.request.Whole = x.body.Bytes()
	} else {
		x.request.Body, x.request.Length = x.body.NewReader(), x.body.Len()
	}
}

// receive decides on a response. One that is not passed on is closed.
func (x *exchange) receive(response *upstreamclient.Response, how upstreamclient.Progress, begun bool) *verdict {
	status, address := response.StatusCode, x.book.Lease.Address
	switch {
	case status < 200:
		response.Close()
		return x.lost(x.explain(how, fmt.Errorf("unexpected status %d as the final response", status)))
	case record.NotStarted(status, response.Header), begun && record.Limited(status, response.Header):
		return x.refused(response, begun, &verdict{
			Failure: dispatch.Failure{Outcome: pool.NotStarted, Progress: dispatch.Responded},
			err:     fmt.Errorf("%w: %s did not start the job", record.ErrNoAnswer, address),
		})
	case status == http.StatusRequestTimeout && how.Reused && x.body.Replayable(): // it refers to the time before the job was sent
		response.Close()
		return x.lost(&verdict{
			Failure: dispatch.Failure{Outcome: pool.Refused, Stale: true, Closed: true},
			err:     fmt.Errorf("%w: %s had given up on the pooled connection (408)", record.ErrNoAnswer, address),
		})
	case x.book.Job.Unwanted(status):
		return x.refused(response, begun, &verdict{
			Failure: dispatch.Failure{Outcome: pool.Failed, Progress: dispatch.Responded},
			err:     fmt.Errorf("%w: %s answered %d, which retry.on retries", record.ErrNoAnswer, address, status),
		})
	}
	return x.passing(response, nil)
}

// passing is the verdict that the submitter gets the response.
func (x *exchange) passing(response *upstreamclient.Response, read []byte) *verdict {
	x.passed = verdict{kind: pass, response: response, body: read}
	return &x.passed
}

// refused ends an attempt with a response that is kept, or passed if it is too long to be kept. One that
// says that the job was not started is not passed where another upstream may have begun the job: the
// submitter would send it again.
func (x *exchange) refused(response *upstreamclient.Response, begun bool, v *verdict) *verdict {
	x.book.Hint(time.Now(), response.Header)
	if x.lost(v); v.done() && !v.next.Again {
		return x.passing(response, nil)
	}
	response.Until = time.Now().Add(refusalTime)
	body, err := io.ReadAll(io.LimitReader(response, maxRefusal+1))
	if err == nil && len(body) > maxRefusal && (v.done() || !begun) {
		return x.passing(response, body)
	}
	response.Close()
	if err == nil && len(body) <= maxRefusal {
		v.kind, v.response, v.body = keep, response, body
	}
	return v
}

// Interim takes a 1xx.
func (x *exchange) Interim(status int, h http.Header, received http1.Head) {
	now := time.Now()
	left, _ := x.book.Job.TimeLeft(now)
	x.interim(now.Add(left), status, h, received)
}

// errHead does not wrap intake.ErrNoRoom, which would let the submitter retry: the upstream has done the job.
var errHead = errors.New("the heads and bodies of other jobs take all the memory for the head of its answer")

// explain says what a failed attempt means.
func (x *exchange) explain(how upstreamclient.Progress, err error) *verdict {
	var (
		body *upstreamclient.BodyError
		dial *upstreamclient.DialError
	)
	switch {
	case errors.Is(err, upstreamclient.ErrWithdrawn):
		return &verdict{Failure: dispatch.Failure{Outcome: pool.Moved, Progress: progress(how)}, err: errMoved}
	case errors.Is(err, upstreamclient.ErrRequest):
		return gone(fmt.Errorf("%w: %w", record.ErrRequest, err))
	case errors.As(err, &body) && errors.Is(body.Err, intake.ErrSpent): // by an attempt before
		return gone(fmt.Errorf("%w: %s: %w", record.ErrNoAnswer, x.book.Lease.Address, body.Err))
	case errors.As(err, &body):
		return gone(x.sendingFailed(body.Err))
	case x.r.Context().Err() != nil:
		f := gone(record.Gone(x.r.Context()))
		if how.Begun {
			f.Progress = dispatch.Begun
		}
		return f
	}
	f := &verdict{
		Failure: dispatch.Failure{Outcome: pool.Refused, Progress: progress(how), Stale: how.Stale(), Closed: how.Stale() && x.attemptTime() < staleTime},
		err:     fmt.Errorf("%w: %s: %w", record.ErrNoAnswer, x.book.Lease.Address, err),
	}
	switch {
	case how.Answered:
		f.Outcome = pool.Truncated
	case how.InFull:
		f.Outcome = pool.NoAnswer
	case errors.As(err, &dial):
		f.ConnectTimedOut = dial.Timeout
		f.ConnectionRefused = errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT) // of a socket
	}
	return f
}

// staleTime is how long after the start of an attempt the end of a pooled connection means that the
// upstream closed it before it received the job.
const staleTime = time.Second

// attemptTime is the time since the attempt under way began.
func (x *exchange) attemptTime() time.Duration {
	return time.Since(x.book.Record.Arrived) - x.book.Record.Attempt().Start
}

// late is the verdict on an attempt whose response did not begin in time. The upstream is not blamed for the time in
// which the submitter sent the body.
func (x *exchange) late(how upstreamclient.Progress) *verdict {
	why, had := record.ErrFirstByte, x.attemptTime()
	if how.Waits {
		had = 0
	} else if !how.Sent.IsZero() {
		had = time.Since(how.Sent)
	}
	if had < x.book.Job.FirstByte {
		why = record.ErrDeadline
	}
	return &verdict{
		Failure: dispatch.Failure{Outcome: x.book.Job.TimedOut(had), Progress: progress(how)},
		err:     fmt.Errorf("%w: %s: %w", record.ErrNoAnswer, x.book.Lease.Address, why),
	}
}

// progress is how far the job came, as far as retries ask.
func progress(how upstreamclient.Progress) dispatch.Progress {
	switch {
	case how.Answered:
		return dispatch.Responded
	case how.Begun:
		return dispatch.Begun
	}
	return dispatch.Unsent
}

// gone is the verdict on an attempt that the submitter's side ended.
func gone(err error) *verdict {
	return &verdict{Failure: dispatch.Failure{Outcome: pool.Gone}, err: err}
}

// lost ends an attempt that failed, and decides what follows.
func (x *exchange) lost(v *verdict) *verdict {
	v.Repeatable = x.body.Replayable()
	v.next = x.book.Failed(v.Failure, v.err)
	return v
}
