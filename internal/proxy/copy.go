package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
)

var (
	errCut         = errors.New("the upstream cut its answer short")
	errIdle        = errors.New("the upstream was silent for too long amid its answer")
	errStreamLimit = errors.New("the job's time for streaming ended")
)

// pass passes an answer on, as it comes, and ends its attempt. An error means
// that the submitter must not take what it got for the whole.
func (x *exchange) pass(a *answer) error {
	defer a.cancel(nil)
	defer func() { _ = a.Body.Close() }() // what is wrong with it, reading has told
	x.answered(a)
	x.body.Release() // an answer has begun: nothing is sent again
	x.head(a)
	err := x.flush()
	if err == nil {
		err = x.stream(a)
	}
	if err == nil {
		x.trailers(a)
	}
	x.finished(a, err)
	return err
}

// answered tells pool and breaker that an answer has begun: now, not hours
// later at its end. A kept answer has told already.
func (x *exchange) answered(a *answer) {
	now := time.Now()
	x.record.TTFB = now.Sub(x.record.Arrived)
	if x.lease == nil {
		return
	}
	x.hint(a.Header)
	if !a.refused() {
		x.lease.Answered(a.StatusCode < http.StatusInternalServerError, x.record.Attempt().Hint)
	}
}

// hint notes the load that the upstream tells.
func (x *exchange) hint(h http.Header) {
	if hint, ok := x.p.cfg.Hint(h, time.Now()); ok {
		x.record.Attempt().Hint = &hint
	}
}

// head writes status and headers.
func (x *exchange) head(a *answer) {
	h := x.w.Header()
	endToEnd(h, a.Header)
	unadorned(h)
	for name := range a.Trailer {
		h.Add("Trailer", name)
	}
	if x.p.cfg.ExplainHeaders {
		x.record.Explain(h)
	}
	x.begun = true
	x.record.Status = a.StatusCode
	x.record.Completeness = intake.Partial
	x.w.WriteHeader(a.StatusCode)
}

// interim passes a 1xx on. The HTTP/2 server encodes headers on a goroutine of
// its own, which may go on after WriteHeader has returned, when the submitter
// resets its stream; it encodes a copy where there is a Content-Length, and
// leaves that out.
func (x *exchange) interim(code int, h http.Header) {
	if !x.r.ProtoAtLeast(1, 1) {
		return
	}
	to := x.w.Header()
	endToEnd(to, h)
	to["Content-Length"] = nil
	x.w.WriteHeader(code)
	clear(to)
}

// buffers are for copying bodies.
var buffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// stream passes the body on, each piece at once. What bounds it is the time
// that the job gives, or else only silence.
func (x *exchange) stream(a *answer) error {
	buffer := buffers.Get().(*[32 << 10]byte)
	defer buffers.Put(buffer)
	if limit := x.record.Facts.Stream; limit > 0 {
		defer time.AfterFunc(limit, func() { a.cancel(errStreamLimit) }).Stop()
	}
	idle := time.AfterFunc(x.p.cfg.Idle, func() { a.cancel(errIdle) })
	defer idle.Stop()
	for {
		idle.Reset(x.p.cfg.Idle)
		n, err := a.Body.Read(buffer[:])
		idle.Stop() // a slow submitter is not the upstream's silence
		if n > 0 {
			if werr := x.write(buffer[:n]); werr != nil {
				return werr
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return x.readFailed(a, err)
		}
	}
}

// readFailed says why the rest of an answer did not come.
func (x *exchange) readFailed(a *answer, err error) error {
	switch cause := context.Cause(a.ctx); {
	case x.r.Context().Err() != nil:
		return x.gone()
	case cause != nil:
		return cause
	}
	return fmt.Errorf("%w: %w", errCut, err)
}

// write writes to the submitter and flushes.
func (x *exchange) write(p []byte) error {
	_ = x.rc.SetWriteDeadline(time.Now().Add(x.p.cfg.WriteIdle)) // not every writer has deadlines
	n, err := x.w.Write(p)
	x.record.Bytes += int64(n)
	if err != nil {
		return fmt.Errorf("%w: %w", record.ErrGone, err)
	}
	return x.flush()
}

func (x *exchange) flush() error {
	if err := x.rc.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("%w: %w", record.ErrGone, err)
	}
	return nil
}

// trailers passes on what follows the body, announced or not.
func (x *exchange) trailers(a *answer) {
	_ = x.rc.SetWriteDeadline(time.Time{}) // the connection's next job has its own time
	h := x.w.Header()
	announced := make(map[string]bool)
	for _, name := range h["Trailer"] {
		announced[name] = true
	}
	for name, values := range a.Trailer {
		if !announced[name] {
			name = http.TrailerPrefix + name
		}
		h[name] = values
	}
}

// finished ends the attempt of an answer that was passed on, or as much of it
// as could be.
func (x *exchange) finished(a *answer, err error) {
	r := x.record
	outcome := pool.Answered
	switch {
	case errors.Is(err, errCut), errors.Is(err, errIdle):
		outcome, r.Outcome = pool.Truncated, intake.Truncated
	case err != nil:
		outcome, r.Outcome = pool.Gone, intake.Gone
	case a.refused():
		outcome, r.Outcome = pool.NotStarted, intake.Failed
	case a.StatusCode >= http.StatusInternalServerError:
		outcome, r.Outcome = pool.Failed, intake.Failed
	default:
		r.Outcome = intake.Answered
	}
	if err == nil {
		r.Completeness = intake.Complete
		r.Unframed = a.ContentLength < 0 && len(a.TransferEncoding) == 0 && a.Body != http.NoBody
	}
	if x.lease != nil {
		x.settle(outcome, err)
	}
}

// refused reports whether an answer says that nothing was done for the job.
func (a *answer) refused() bool {
	return a.StatusCode == http.StatusServiceUnavailable &&
		(a.Header.Get("Retry-After") != "" || a.Header.Get("Job-Started") == "no")
}
