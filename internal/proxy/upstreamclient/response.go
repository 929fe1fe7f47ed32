package upstreamclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"time"
)

// The reasons why an exchange ended.
var (
	// ErrDeadline: the head of an answer did not come before the deadline.
	ErrDeadline = errors.New("no answer began before the deadline")
	// ErrSilent: Read waited for so long as it may.
	ErrSilent = errors.New("the upstream was silent for too long")
	// errInterims: an upstream sent interim answers without end.
	errInterims = errors.New("too many interim answers")
)

// maxInterims bounds the interim answers to one request.
const maxInterims = 32

// Progress is how far a request got. It tells whether the request may be sent again.
type Progress struct {
	Reused   bool // it was sent on a kept connection
	Begun    bool // some of it may have reached the upstream
	InFull   bool // all of it was sent
	Answered bool // at least one byte of an answer came
}

// Stale reports whether a kept connection brought nothing: the upstream may have
// closed it just as the request was sent, which does not speak against the upstream.
func (p Progress) Stale() bool { return p.Reused && !p.Answered }

// Response is an answer whose head has come. Close must be called exactly once.
type Response struct {
	*http.Response // its Body and Close are not for the caller

	client  *Client
	conn    *conn
	sending *sending
	request *Request
	ctx     context.Context
	unhook  func() bool // ends the interruption by ctx
	whole   bool        // all of the body was read
}

// Do sends a request and waits for the head of the answer. It ends when ctx does:
// the error is then ctx's cause. Errors of a dial are *DialError, those of the body *BodyError.
func (c *Client) Do(ctx context.Context, r *Request) (*Response, Progress, error) {
	var p Progress
	if ctx.Err() != nil {
		return nil, p, context.Cause(ctx)
	}
	cn, err := c.connect(ctx, r)
	if err != nil {
		return nil, p, errorOf(ctx, nil, err)
	}
	p.Reused = cn.reused
	unhook := context.AfterFunc(ctx, cn.interrupt)
	s, err := send(cn, r)
	if err != nil {
		unhook()
		_ = cn.Close()
		return nil, p, err
	}
	head, answered, err := cn.head(r, c.cfg.MaxHead)
	p.Answered = answered
	if err != nil {
		err = errorOf(ctx, s, err)
		unhook()
		abandon(cn, r)
		if r.Body == nil && s.ended != nil {
			<-s.ended // the connection is closed: it does not take long
		}
	}
	p.Begun = s.written.Load() > 0
	p.InFull = s.over() && s.err == nil
	if err != nil {
		return nil, p, err
	}
	if !s.over() {
		_ = cn.SetWriteDeadline(time.Time{}) // the deadline was for the head; if this fails, so does reading
	}
	return &Response{
		Response: head, client: c, conn: cn, sending: s, request: r, ctx: ctx, unhook: unhook,
		whole: head.Body == http.NoBody,
	}, p, nil
}

// abandon ends an exchange that cannot go on.
func abandon(cn *conn, r *Request) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	_ = cn.Close()
}

// errorOf is the error that an exchange ends with.
func errorOf(ctx context.Context, s *sending, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case s != nil && s.body.Load() != nil:
		return s.body.Load()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ErrDeadline
	}
	return err
}

// head reads the head of the answer, and passes interim ones on. answered is
// whether any byte of it came.
func (c *conn) head(r *Request, most int64) (_ *http.Response, answered bool, _ error) {
	if err := c.await(); err != nil {
		return nil, false, err
	}
	var asked *http.Request // its method tells whether a body follows; nil is GET
	if r.Method == http.MethodHead {
		asked = &http.Request{Method: http.MethodHead}
	}
	for interims := 0; ; interims++ {
		c.left = most
		head, err := http.ReadResponse(c.in, asked)
		c.left = math.MaxInt64
		switch {
		case err != nil:
			return nil, true, err
		case head.StatusCode < 100:
			return nil, true, fmt.Errorf("an answer with status %d", head.StatusCode)
		case head.StatusCode >= 200 || head.StatusCode == http.StatusSwitchingProtocols:
			return head, true, nil
		case interims == maxInterims:
			return nil, true, errInterims
		case head.StatusCode != http.StatusContinue && r.Interim != nil:
			r.Interim(head.StatusCode, head.Header)
		}
	}
}

// Ready reports whether the first Read brings something, or the end, without
// waiting for the upstream.
func (r *Response) Ready() bool {
	switch {
	case r.whole:
		return true
	case !r.conn.more():
		return false
	case len(r.TransferEncoding) == 0 || r.conn.failed != nil:
		return true
	}
	there, err := r.conn.in.Peek(r.conn.in.Buffered())
	size, rest, complete := bytes.Cut(there, []byte("\n"))
	if len(size) > 0 && size[0] == '0' { // the last chunk, mostly: it ends with an empty line
		return complete && (bytes.HasPrefix(rest, []byte("\r\n")) || bytes.Contains(rest, []byte("\r\n\r\n")))
	}
	return err == nil && len(rest) > 0
}

// Read reads the body. It waits for the upstream until then at most, and ends
// when the context of Do does. The error at the end is io.EOF; then Trailer is complete.
func (r *Response) Read(p []byte, until time.Time) (int, error) {
	if r.whole {
		return 0, io.EOF
	}
	if r.ContentLength < 0 || int64(r.conn.in.Buffered()) < r.ContentLength {
		_ = r.conn.SetReadDeadline(until) // fails only on a closed connection
		if r.ctx.Err() != nil {           // the deadline must not undo an interruption
			return 0, context.Cause(r.ctx)
		}
		if failed := r.sending.body.Load(); failed != nil {
			return 0, failed
		}
	}
	n, err := r.Response.Body.Read(p)
	switch {
	case err == nil:
		return n, nil
	case err == io.EOF:
		r.whole = true
		return n, io.EOF
	}
	if err = errorOf(r.ctx, r.sending, err); errors.Is(err, ErrDeadline) {
		err = ErrSilent
	}
	return n, err
}

// lastWrite is how long the sending of a body may still take after the answer has come whole.
const lastWrite = 50 * time.Millisecond

// Close ends the exchange. The connection is kept if nothing is left on it and
// nothing was wrong.
func (r *Response) Close() {
	calm := r.unhook() // nobody interrupts it anymore
	good := calm && r.whole && !r.Response.Close && r.StatusCode >= 200 && r.conn.failed == nil && r.conn.in.Buffered() == 0
	if !good || r.request.Body != nil && !r.sending.over() {
		abandon(r.conn, r.request)
		return
	}
	r.conn.release()
	if r.sending.over() {
		r.settle()
		return
	}
	_ = r.conn.SetWriteDeadline(time.Now().Add(lastWrite)) // a connection that fails here is not kept
	r.sending.finish(r.settle)
}

// settle keeps the connection if all of the request was sent, or else closes it.
func (r *Response) settle() {
	if r.sending.err != nil {
		abandon(r.conn, r.request)
		return
	}
	if r.request.Body != nil {
		_ = r.request.Body.Close()
	}
	r.client.keep(r.request.Address, r.conn)
}
