package proxy

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/proxy/http1"
	"example.org/pilotfish/internal/proxy/upstreamclient"
	"example.org/pilotfish/internal/record"
)

var (
	errAborted     = errors.New("the upstream aborted its response")
	errIdle        = errors.New("idle timeout: the upstream stopped sending its response")
	errStreamLimit = errors.New("the job's stream timeout passed")
)

// passOpen forwards an open response and closes it.
func (x *exchange) passOpen(v *verdict) error {
	defer v.response.Close()
	return x.pass(v.response, v.body)
}

// pass streams a response to the submitter and ends the attempt if it has not ended. read is the
// part of the body that was already read. After an error the caller must abort the response, so the
// submitter can detect that it is truncated.
func (x *exchange) pass(response *upstreamclient.Response, read []byte) error {
	x.removeOpen()
	now := time.Now()
	x.book.Head(now, response.StatusCode, response.Header)
	x.body.Release() // no retry is possible after the start of a response
	x.head(response)
	err := x.stream(now, response, read)
	switch {
	case err == nil:
		x.trailers(response.Trailer)
		x.book.Trailer(response.Trailer)
		if response.Unframed() {
			x.book.Unframed()
		}
		x.book.End(pool.Answered, nil)
	case errors.Is(err, errAborted), errors.Is(err, errIdle):
		x.book.End(pool.Truncated, err)
	default:
		x.book.End(pool.Gone, err)
	}
	return err
}

func (x *exchange) head(response *upstreamclient.Response) {
	h := response.Header
	endToEnd(h)
	withoutDefaults(h)
	if len(response.Trailer) > 0 {
		h["Trailer"] = []string{strings.Join(slices.Sorted(maps.Keys(response.Trailer)), ", ")}
	}
	if response.ContentLength < 0 && x.r.ProtoMajor == 1 && x.r.ProtoMinor > 0 {
		h["Transfer-Encoding"] = []string{"chunked"} // otherwise the server would add a Content-Length to a short body
	}
	if x.p.cfg.Draining() {
		h.Set("Connection", "close")
	}
	x.book.Response(h, h)
	x.writeHead(response.StatusCode, h, &response.Received)
}

// verbatim is a ResponseWriter that can preserve the order and the case of header fields. Only that of HTTP/1.1
// implements it.
type verbatim interface {
	// Received returns the header fields of the request, as received, and the memory of its head, in bytes.
	Received() (fields []http1.Field, memory int64)
	// SetHead replaces the header, and makes the next WriteHeader use the order and case of a received header.
	SetHead(received *http1.Head, header http.Header)
}

// writeHead writes a status and a header, in the order and case of the upstream's.
func (x *exchange) writeHead(status int, h http.Header, received *http1.Head) {
	if w, ok := x.w.(verbatim); ok {
		w.SetHead(received, h)
	} else {
		maps.Copy(x.w.Header(), h)
	}
	x.w.WriteHeader(status)
}

// interim forwards a 1xx response. net/http's HTTP/2 server encodes headers on another
// goroutine. If the submitter resets its stream, that goroutine can still read the map after
// WriteHeader has returned: a data race with clear. With a Content-Length, it encodes a
// copy without it; hence the Content-Length below. After the deadline, a submitter that does
// not read the response no longer delays the job.
func (x *exchange) interim(deadline time.Time, status int, h http.Header, received http1.Head) {
	if !x.r.ProtoAtLeast(1, 1) {
		return
	}
	until := time.Now().Add(writeIdle)
	if deadline.Before(until) {
		until = deadline
	}
	_ = x.rc.SetWriteDeadline(until) // not every writer has deadlines
	endToEnd(h)
	h["Content-Length"] = nil
	x.writeHead(status, h, &received)
	clear(x.w.Header())
	_ = x.rc.SetWriteDeadline(time.Time{}) // the short deadline must not abort the final response
}

// stream forwards the body and flushes each piece at once. It is bounded by the job's stream
// timeout, if it has one, and by the idle timeout. The header is sent together with the first
// piece if that is ready. now is updated after each call that can block.
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
	buffer := newCopyBuffer(response.ContentLength)
	defer func() { buffer.release() }()
	complete := len(read) == 0 && response.Complete() // reads do not block
	for {
		if !complete {
			now = time.Now()
		}
		why := errIdle
		response.Until = now.Add(x.p.cfg.Idle)
		if !limit.IsZero() && limit.Before(response.Until) {
			response.Until, why = limit, errStreamLimit
		}
		n, err := response.Read(buffer.bytes)
		if !complete {
			now = time.Now()
		}
		x.extend(now)
		if n > 0 {
			if failed := x.write(buffer.bytes[:n]); failed != nil {
				return failed
			}
			buffer = buffer.fit(n)
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
			return x.truncation(err)
		}
	}
}

// truncation returns the reason why the rest of a response is missing.
func (x *exchange) truncation(err error) error {
	var body *upstreamclient.BodyError
	switch {
	case x.r.Context().Err() != nil:
		return record.Gone(x.r.Context())
	case errors.As(err, &body):
		return x.sendingFailed(body.Err)
	}
	return fmt.Errorf("%w: %w", errAborted, err)
}

// extend renews the write timeout of the submitter's connection.
func (x *exchange) extend(now time.Time) {
	_ = x.rc.SetWriteDeadline(now.Add(writeIdle)) // not every writer has deadlines
}

func (x *exchange) write(p []byte) error {
	n, err := x.w.Write(p)
	x.book.Wrote(p, n)
	if err != nil {
		return fmt.Errorf("%w: %w", record.ErrGone, err)
	}
	return nil
}

func (x *exchange) flush() error {
	if err := x.rc.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("%w: %w", record.ErrGone, err)
	}
	return nil
}

// flushEnd flushes the end of a body with the given Content-Length or -1. If the server
// adds an end of its own, such as a last chunk, it does not flush: the server sends both
// together when the handler returns. HTTP/2 without a length is flushed, because the
// server would otherwise add a Content-Length.
func (x *exchange) flushEnd(length int64) error {
	chunked := length < 0 && x.r.ProtoMajor == 1 && x.r.ProtoMinor > 0
	if chunked || length >= 0 && x.r.ProtoMajor > 1 {
		return nil
	}
	return x.flush()
}

// trailers forwards the trailer fields, announced or not.
func (x *exchange) trailers(trailer http.Header) {
	for name, values := range trailer {
		if !httpguts.ValidTrailerHeader(name) || !httpguts.ValidHeaderFieldName(name) {
			continue // a framing field, or one that HTTP/2 cannot send; the server would then never end the stream
		}
		x.w.Header()[http.TrailerPrefix+name] = values
	}
}
