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

// Bounds of the body of a response that is kept while the job is retried elsewhere. A response with a
// larger body is forwarded instead; of one whose body takes longer, the first part is kept.
const (
	maxRefusal  = 64 << 10
	refusalTime = time.Second
)

// errMoved is the error of an attempt that was withdrawn.
var errMoved = fmt.Errorf("%w: the job waited there and was moved to another upstream", record.ErrNoAnswer)

// errWithdrawn is the error of an attempt that the upstream withdrew on request.
var errWithdrawn = fmt.Errorf("%w: the upstream withdrew the waiting job", record.ErrNoAnswer)

// attempt makes one attempt, which starts now, after the attempts in known.
func (x *exchange) attempt(now time.Time, known *attemptSummary) *verdict {
	left, _ := x.book.Job.TimeLeft(now)
	x.prepare(now.Add(left))
	response, how, err := x.p.upstreams.Do(x.r.Context(), &x.request)
	if err == nil && x.reserve(response.Received.Memory) != nil {
		response.Close()
		err = errHead
	}
	if errors.Is(err, upstreamclient.ErrDeadline) {
		return x.endFailed(x.timeoutVerdict(how))
	}
	if err != nil {
		return x.endFailed(x.failureVerdict(how, err))
	}
	return x.receive(response, how, known)
}

// prepare fills in the request of an attempt. The response must begin by deadline; sending a slow body extends it.
func (x *exchange) prepare(deadline time.Time) {
	lease := x.book.Lease
	x.book.Expect(x.header, x.header)
	x.book.Identify(x.header)
	x.request = upstreamclient.Request{
		Address: lease.Address, Host: x.r.Host, Method: x.r.Method, Target: x.target,
		Header: x.header, Fresh: lease.Fresh, ConnectTimeout: lease.ConnectTimeout, Deadline: deadline,
		FirstByte: x.book.Job.FirstByte, Limit: x.book.Job.Deadline,
		Withdrawal: &x.withdrawal, Interim: x,
	}
	if w, ok := x.w.(verbatim); ok {
		x.request.Received, _ = w.Received()
	}
	if x.body.Whole() {
		x.request.Whole = x.body.Bytes()
	} else {
		x.request.Body, x.request.Length = x.body.NewReader(), x.body.Len()
	}
}

// receive decides whether a response is forwarded, kept or dropped. A response that is not forwarded is closed.
func (x *exchange) receive(response *upstreamclient.Response, how upstreamclient.Progress, known *attemptSummary) *verdict {
	status, address := response.StatusCode, x.book.Lease.Address
	switch {
	case status < 200:
		response.Close()
		return x.endFailed(x.failureVerdict(how, fmt.Errorf("unexpected status %d as the final response", status)))
	case record.Withdrawn(status, response.Header):
		return x.refused(response, known, &verdict{Failure: dispatch.Failure{Outcome: pool.Moved}, err: errWithdrawn})
	case record.NotStarted(status, response.Header), known.begun && record.Limited(status, response.Header):
		return x.refused(response, known, &verdict{
			Failure: dispatch.Failure{Outcome: pool.NotStarted, Progress: dispatch.Responded},
			err:     fmt.Errorf("%w: %s did not start the job", record.ErrNoAnswer, address),
		})
	case status == http.StatusRequestTimeout && how.Reused && x.body.Replayable(): // the timeout of an idle connection, not of this job
		response.Close()
		return x.endFailed(&verdict{
			Failure: dispatch.Failure{Outcome: pool.Refused, Stale: true, Blameless: true},
			err:     fmt.Errorf("%w: %s timed out the pooled connection (408)", record.ErrNoAnswer, address),
		})
	case x.book.Job.RetriesStatus(status):
		return x.refused(response, known, &verdict{
			Failure: dispatch.Failure{Outcome: pool.Failed, Progress: dispatch.Responded},
			err:     fmt.Errorf("%w: %s responded with %d, which retry.on retries", record.ErrNoAnswer, address, status),
		})
	}
	return x.passVerdict(response, nil)
}

// passVerdict returns the verdict that the response is forwarded.
func (x *exchange) passVerdict(response *upstreamclient.Response, read []byte) *verdict {
	x.passed = verdict{kind: pass, response: response, body: read}
	return &x.passed
}

// refused ends an attempt whose response is kept, or forwarded if there is no retry or it is too long to be kept. If its body is
// truncated or slow, what was received is kept. A response that says that the job was not started is not forwarded if another
// upstream has or may have run the job: the submitter would send the job again.
func (x *exchange) refused(response *upstreamclient.Response, known *attemptSummary, v *verdict) *verdict {
	x.book.Hint(time.Now(), response.Header)
	passable := v.upstreamRan() || !known.ran()
	if x.endFailed(v); passable && !v.next.Again {
		return x.passVerdict(response, nil)
	}
	response.Until = time.Now().Add(refusalTime)
	body, err := io.ReadAll(io.LimitReader(response, maxRefusal+1))
	if len(body) > maxRefusal && passable && !v.next.Claimed {
		return x.passVerdict(response, body)
	}
	response.Close()
	if len(body) <= maxRefusal {
		v.kind, v.response, v.body, v.partial = keep, response, body, err != nil
	}
	return v
}

// Interim forwards a 1xx response.
func (x *exchange) Interim(status int, h http.Header, received http1.Head) {
	now := time.Now()
	left, _ := x.book.Job.TimeLeft(now)
	x.interim(now.Add(left), status, h, received)
}

// errHead does not wrap intake.ErrNoRoom, which would make the submitter retry although the upstream has run the job.
var errHead = errors.New("no memory for the response header: it is used up by other jobs")

func (x *exchange) failureVerdict(how upstreamclient.Progress, err error) *verdict {
	var (
		body *upstreamclient.BodyError
		dial *upstreamclient.DialError
	)
	switch {
	case errors.Is(err, upstreamclient.ErrWithdrawn):
		return &verdict{Failure: dispatch.Failure{Outcome: pool.Moved, Progress: progress(how)}, err: errMoved}
	case errors.Is(err, upstreamclient.ErrRequest):
		return goneVerdict(fmt.Errorf("%w: %w", record.ErrRequest, err))
	case errors.As(err, &body) && errors.Is(body.Err, intake.ErrSpent): // sent by an earlier attempt
		return goneVerdict(fmt.Errorf("%w: %s: %w", record.ErrNoAnswer, x.book.Lease.Address, body.Err))
	case errors.As(err, &body):
		return goneVerdict(x.sendingFailed(body.Err))
	case x.r.Context().Err() != nil:
		f := goneVerdict(record.Gone(x.r.Context()))
		if how.Begun {
			f.Progress = dispatch.Begun
		}
		return f
	}
	f := &verdict{
		Failure: dispatch.Failure{Outcome: pool.Refused, Progress: progress(how), Stale: how.Stale(), Blameless: how.Stale() && x.attemptTime() < staleTime},
		err:     fmt.Errorf("%w: %s: %w", record.ErrNoAnswer, x.book.Lease.Address, err),
	}
	switch {
	case how.Answered:
		f.Outcome = pool.Truncated
	case how.InFull:
		f.Outcome = pool.NoAnswer
	case errors.As(err, &dial):
		if f.Blameless = x.p.cfg.IsShortage(err); f.Blameless {
			f.err = fmt.Errorf("%w to %s: %w", record.ErrNotDialed, x.book.Lease.Address, err)
		}
		// The resolver can take the whole connect timeout.
		f.ConnectTimedOut = dial.Timeout && !f.Blameless
		f.ConnectionRefused = errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT) // a missing Unix socket
	}
	return f
}

// staleTime is the age of an attempt up to which the end of its pooled connection is taken as a race: the
// upstream closed the idle connection before the job arrived.
const staleTime = time.Second

// attemptTime returns the time since the current attempt began.
func (x *exchange) attemptTime() time.Duration {
	return time.Since(x.book.Record.Arrived) - x.book.Record.Attempt().Start
}

// timeoutVerdict returns the verdict of an attempt whose response did not begin in time. The time in which the submitter was
// sending the body does not count against the upstream.
func (x *exchange) timeoutVerdict(how upstreamclient.Progress) *verdict {
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

// progress converts the client's progress to the steps that retries distinguish.
func progress(how upstreamclient.Progress) dispatch.Progress {
	switch {
	case how.Answered:
		return dispatch.Responded
	case how.Begun:
		return dispatch.Begun
	}
	return dispatch.Unsent
}

// goneVerdict returns the verdict of an attempt that failed because of the submitter.
func goneVerdict(err error) *verdict {
	return &verdict{Failure: dispatch.Failure{Outcome: pool.Gone}, err: err}
}

// endFailed ends a failed attempt and decides whether the job is retried.
func (x *exchange) endFailed(v *verdict) *verdict {
	v.Repeatable = x.body.Replayable()
	v.next = x.book.Failed(v.Failure, v.err)
	return v
}
