package proxy

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"

	"example.org/pilotfish/internal/job"
	"example.org/pilotfish/internal/proxy/http1"
	"example.org/pilotfish/internal/proxy/upstreamclient"
	"example.org/pilotfish/internal/record"
)

var (
	errCut         = errors.New("the upstream cut its answer short")
	errIdle        = errors.New("idle timeout: the upstream sent nothing more of its answer")
	errStreamLimit = errors.New("the job's time for streaming ended")
)

// passOpen passes an open response on, and closes it.
func (x *exchange) passOpen(v *verdict) error {
	defer v.response.Close()
	return x.pass(v.response, v.body)
}

// pass passes a response on, as it arrives, and ends the attempt if it has not ended. read is
// what was already read of the body. After an error the submitter must be able to see that it did
// not get the whole response.
func (x *exchange) pass(response *upstreamclient.Response, read []byte) error {
	x.leave()
	now := time.Now()
	x.book.Head(now, response.StatusCode, response.Header)
	x.body.Release() // a response has begun: nothing is sent again
	x.head(response)
	err := x.stream(now, response, read)
	switch {
	case err == nil:
		x.trailers(response.Trailer)
		x.book.Trailer(response.Trailer)
		if response.Unframed() {
			x.book.Unframed()
		}
		x.book.End(job.Whole, nil)
	case errors.Is(err, errCut), errors.Is(err, errIdle):
		x.book.End(job.Cut, err)
	default:
		x.book.End(job.Left, err)
	}
	return err
}

// head writes status and headers.
func (x *exchange) head(response *upstreamclient.Response) {
	h := x.w.Header()
	endToEnd(h, response.Header)
	unadorned(h)
	if len(response.Trailer) > 0 {
		h["Trailer"] = []string{strings.Join(slices.Sorted(maps.Keys(response.Trailer)), ", ")}
	}
	if response.ContentLength < 0 && x.r.ProtoMajor == 1 && x.r.ProtoMinor > 0 {
		h["Transfer-Encoding"] = []string{"chunked"} // or the server would give a short body a length
	}
	if x.p.cfg.Draining() {
		h.Set("Connection", "close")
	}
	x.book.Response(h, h)
	x.like(&response.Received)
	x.w.WriteHeader(response.StatusCode)
}

// verbatim is a ResponseWriter that keeps the order and the spelling of header fields. Those of HTTP/2, where all
// names are in lower case, and of HTTP/1.0 do not.
type verbatim interface {
	// Received returns the fields of the request.
	Received() []http1.Field
	// Like makes the head that WriteHeader writes next like one that was received.
	Like(*http1.Head)
}

// like lets the head that is written next be like an upstream's.
func (x *exchange) like(received *http1.Head) {
	if w, ok := x.w.(verbatim); ok {
		w.Like(received)
	}
}

// interim passes a 1xx on. The HTTP/2 server encodes headers on a goroutine of
// its own, which may go on after WriteHeader has returned, when the submitter
// resets its stream; it encodes a copy where there is a Content-Length, and
// leaves that out. A submitter that does not take it by the deadline holds the job no longer.
func (x *exchange) interim(deadline time.Time, status int, h http.Header, received http1.Head) {
	if !x.r.ProtoAtLeast(1, 1) {
		return
	}
	until := time.Now().Add(writeIdle)
	if deadline.Before(until) {
		until = deadline
	}
	_ = x.rc.SetWriteDeadline(until) // not every writer has deadlines
	to := x.w.Header()
	endToEnd(to, h)
	to["Content-Length"] = nil
	x.like(&received)
	x.w.WriteHeader(status)
	clear(to)
	_ = x.rc.SetWriteDeadline(time.Time{}) // it was short: it must not be taken for that of a later answer
}

// buffers are for copying bodies.
var buffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// stream passes the body on, each piece at once, from now on. It is limited by the job's
// stream timeout, if it has one, and by the idle timeout. The head goes with the
// first piece, unless the upstream pauses before that. The clock is read after what may wait.
func (x *exchange) stream(now time.Time, response *upstreamclient.Response, read []byte) error {
	var limit time.Time
	if stream := x.book.Record.Facts.Stream; stream > 0 {
		limit = now.Add(stream)
	}
	if len(read) > 0 {
		x.extend(now)
		if err := x.write(read); err != nil {
			return err
		}
	} else if !response.Ready() {
		x.extend(now)
		if err := x.flush(); err != nil {
			return err
		}
	}
	buffer := buffers.Get().(*[32 << 10]byte)
	defer buffers.Put(buffer)
	complete := len(read) == 0 && response.Complete() // nothing waits
	for {
		if !complete {
			now = time.Now()
		}
		why := errIdle
		response.Until = now.Add(x.p.cfg.Idle)
		if !limit.IsZero() && limit.Before(response.Until) {
			response.Until, why = limit, errStreamLimit
		}
		n, err := response.Read(buffer[:])
		if !complete {
			now = time.Now()
		}
		x.extend(now)
		if n > 0 {
			if failed := x.write(buffer[:n]); failed != nil {
				return failed
			}
		}
		if errors.Is(err, io.EOF) {
			return x.flushEnd(response.ContentLength)
		}
		if failed := x.flush(); failed != nil {
			return failed
		}
		if errors.Is(err, upstreamclient.ErrSilent) {
			return why
		}
		if err != nil {
			return x.cut(err)
		}
	}
}

// cut says why the rest of a response did not come.
func (x *exchange) cut(err error) error {
	var body *upstreamclient.BodyError
	switch {
	case x.r.Context().Err() != nil:
		return record.Gone(x.r.Context())
	case errors.As(err, &body):
		return x.sendingFailed(body.Err)
	}
	return fmt.Errorf("%w: %w", errCut, err)
}

// extend gives the submitter its time to take what is written next.
func (x *exchange) extend(now time.Time) {
	_ = x.rc.SetWriteDeadline(now.Add(writeIdle)) // not every writer has deadlines
}

// write writes to the submitter.
func (x *exchange) write(p []byte) error {
	n, err := x.w.Write(p)
	x.book.Wrote(p, n)
	if err != nil {
		return fmt.Errorf("%w: %w", record.ErrGone, err)
	}
	return nil
}

// flush sends what was written.
func (x *exchange) flush() error {
	if err := x.rc.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("%w: %w", record.ErrGone, err)
	}
	return nil
}

// flushEnd sends the last of a body of that length; -1 is unknown. Where the
// server adds an end of its own, it sends both together when the handler
// returns. In HTTP/2 it would also add a length then, if there is none.
func (x *exchange) flushEnd(length int64) error {
	chunked := length < 0 && x.r.ProtoMajor == 1 && x.r.ProtoMinor > 0
	if chunked || length >= 0 && x.r.ProtoMajor > 1 {
		return nil
	}
	return x.flush()
}

// trailers passes on what follows the body, announced or not.
func (x *exchange) trailers(trailer http.Header) {
	for name, values := range trailer {
		if !httpguts.ValidTrailerHeader(name) || !httpguts.ValidHeaderFieldName(name) {
			continue // it would frame a message; or HTTP/2 could not send it, and would not end the stream without
		}
		x.w.Header()[http.TrailerPrefix+name] = values
	}
}
