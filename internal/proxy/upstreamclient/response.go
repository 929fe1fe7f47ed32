package upstreamclient

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// errInterims: an upstream sends interim answers without end.
var errInterims = errors.New("too many interim answers")

// maxInterims bounds the interim answers to one request.
const maxInterims = 32

// Response is an answer whose head has come. Close must be called exactly once.
type Response struct {
	*http.Response       // its Body and Close are not for the caller
	HeadMemory     int64 // bytes that its head takes

	// Until is when Read no longer waits for the upstream.
	Until time.Time

	client  *Client
	conn    *conn
	sending sending
	address string
	passes  bool // the request's body is not whole
	ctx     context.Context
	unhook  func() bool // ends the interruption by ctx
	whole   bool        // all of the body was read
}

// retract takes back a request of which nothing was sent.
func (r *Response) retract(of *Request) {
	of.Withdrawal.leave(false)
	r.unhook()
	r.sending.release()
	_ = r.conn.Close()
}

// receive reads the head of the answer. waited is the error of the wait for its first
// byte. After an error, the exchange has ended. It notes in p what came.
func (r *Response) receive(to *Request, waited error, p *Progress) error {
	s := &r.sending
	head, err := r.conn.head(r.ctx, to, waited, p) //nolint:bodyclose // Response.Close does
	if err != nil {
		err = errorOf(r.ctx, s, err)
		r.unhook()
		_ = r.conn.Close()
		if to.Body == nil && s.ended != nil {
			<-s.ended // the connection is closed: it does not take long
		}
	}
	p.Begun = s.written.Load() > 0
	p.InFull = s.over() && s.err == nil
	if err != nil {
		return err
	}
	if !s.over() {
		_ = r.conn.SetWriteDeadline(time.Time{}) // the deadline was for the head; if this fails, so does reading
	}
	r.Response, r.whole = head, head.Body == http.NoBody
	r.HeadMemory = r.conn.bound.bytes + r.conn.bound.lines*LineCost
	return nil
}

// head reads the head of the answer after a wait that ended with err, and passes
// interim ones on. It notes in p what came.
func (c *conn) head(ctx context.Context, r *Request, err error, p *Progress) (*http.Response, error) {
	withdrawn := r.Withdrawal.leave(err == nil)
	switch {
	case err != nil && withdrawn:
		return nil, ErrWithdrawn
	case err != nil:
		return nil, err
	}
	p.Answered = true
	if withdrawn { // too late
		if err := cmp.Or(c.SetReadDeadline(r.Deadline), ctx.Err()); err != nil { // the deadline must not undo an interruption by ctx
			return nil, err
		}
	}
	var asked *http.Request // its method tells whether a body follows; nil is GET
	if r.Method == http.MethodHead {
		asked = &http.Request{Method: http.MethodHead}
	}
	for interims := 0; ; interims++ {
		head, err := c.readHead(asked)
		switch {
		case err != nil:
			return nil, err
		case head.StatusCode < 100:
			return nil, fmt.Errorf("an answer with status %d", head.StatusCode)
		case head.StatusCode >= 200 || head.StatusCode == http.StatusSwitchingProtocols:
			return head, ambiguous(head)
		case interims == maxInterims:
			return nil, errInterims
		case head.StatusCode != http.StatusContinue && r.Interim != nil:
			r.Interim.Interim(head.StatusCode, head.Header)
		}
		p.Interim, p.Answered = true, false
		if _, err := c.In.Peek(1); err != nil {
			return nil, err
		}
		p.Answered = true
	}
}

// readHead reads one head, within its bounds.
func (c *conn) readHead(asked *http.Request) (*http.Response, error) {
	c.bound.bytes, c.bound.lines = 0, 0
	c.bound.add(c.received(), 1)
	c.Count = c.counting
	head, err := http.ReadResponse(c.In, asked)
	c.Count = nil
	c.bound.add(c.received(), -1)
	switch {
	case err == nil:
		err = c.bound.check()
	case c.Failed != nil && !errors.Is(c.Failed, io.EOF):
		err = c.Failed // half a head is late, or too long, not malformed
	}
	return head, err
}

// received is what has come and was not read yet.
func (c *conn) received() []byte {
	there, _ := c.In.Peek(c.In.Buffered()) // there are as many
	return there
}

// ambiguous refuses what net/http reads in one way, and other parsers in another: a carriage return amid
// the status line, which some take for a line end, and a space in a header's name, so that
// "Content-Length : 2" is no length.
func ambiguous(head *http.Response) error {
	if strings.Contains(head.Status, "\r") {
		return fmt.Errorf("malformed status line %q", head.Status)
	}
	for name := range head.Header {
		if strings.Contains(name, " ") {
			return fmt.Errorf("malformed header name %q", name)
		}
	}
	return nil
}

// Unframed reports whether the body has neither a length nor chunks: it ends
// with the connection, and nothing tells whether the upstream had more to say.
func (r *Response) Unframed() bool {
	return r.ContentLength < 0 && len(r.TransferEncoding) == 0 && r.Body != http.NoBody
}

// Ready reports whether the first Read brings something, or the end, without
// waiting for the upstream. Of chunks it does so where all have come, judged by their last bytes:
// net/http's reader waits for the rest of a chunk that has begun. Where a chunk is cut off behind
// bytes that look like the end, the response waits for the rest of it.
func (r *Response) Ready() bool {
	switch {
	case r.whole:
		return true
	case !r.conn.More():
		return false
	case len(r.TransferEncoding) == 0 || r.conn.Failed != nil:
		return true
	}
	return bytes.HasSuffix(r.conn.received(), []byte("0\r\n\r\n"))
}

// Complete reports whether all of a body with a length has come: no Read will wait.
func (r *Response) Complete() bool {
	return r.whole || r.ContentLength >= 0 && int64(r.conn.In.Buffered()) >= r.ContentLength
}

// Read reads the body. It waits for the upstream until Until at most, and ends
// when the context of Do does. The error at the end is io.EOF; then Trailer is complete.
func (r *Response) Read(p []byte) (int, error) {
	if r.whole {
		return 0, io.EOF
	}
	if r.ContentLength < 0 || int64(r.conn.In.Buffered()) < r.ContentLength {
		_ = r.conn.SetReadDeadline(r.Until) // fails only on a closed connection
		if r.ctx.Err() != nil {             // the deadline must not undo an interruption
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
	case errors.Is(err, io.EOF):
		r.whole = true
		return n, io.EOF
	}
	if err = errorOf(r.ctx, &r.sending, err); errors.Is(err, ErrDeadline) {
		err = ErrSilent
	}
	return n, err
}

// lastWrite is how long the sending of a body may still take after the answer has come whole.
const lastWrite = 50 * time.Millisecond

// Close ends the exchange. The connection is pooled if all of the request was sent, nothing is left on
// the connection, and nothing was wrong.
func (r *Response) Close() {
	calm := r.unhook() // nobody interrupts it anymore
	good := calm && r.whole && !r.Response.Close && r.StatusCode >= 200 && r.conn.Failed == nil && r.conn.In.Buffered() == 0
	if good && !r.passes && !r.sending.over() {
		_ = r.conn.SetWriteDeadline(time.Now().Add(lastWrite)) // a connection that fails here is not pooled
		<-r.sending.ended
	}
	if !good || !r.sending.over() || r.sending.err != nil {
		_ = r.conn.Close()
		return
	}
	r.conn.Release()
	if !r.conn.Drained() {
		_ = r.conn.Close()
		return
	}
	r.client.keep(r.address, r.conn)
}
