package upstreamclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"example.org/pilotfish/internal/proxy/http1"
)

// The rate of 1xx responses to a request is limited, not their number: after interimBurst, each is delayed by
// interimPause.
const (
	interimBurst = 64
	interimPause = time.Millisecond
)

// Response is a response whose head was received. Close must be called exactly once.
type Response struct {
	*http.Response            // its fields Body and Close are not for the caller
	Received       http1.Head // the head as received

	// Until is the deadline of Read.
	Until time.Time

	client  *Client
	conn    *conn
	sending sending
	address string
	passes  bool // the request's body is read from the submitter while it is sent
	ctx     context.Context
	unhook  func() bool // detaches the connection from ctx
	whole   bool        // the whole body was read
	failed  error       // the error of the last Read; io.EOF at the end of the body
	left    int64       // unread bytes of a body with a Content-Length
	chunks  *http1.Chunks
}

// retract ends an exchange whose request was not sent.
func (r *Response) retract(of *Request) {
	of.Withdrawal.leave(false)
	r.unhook()
	r.sending.release()
	_ = r.conn.Close()
}

// receive reads the head of the response. waited is the error of the wait for its first
// byte. After an error, the exchange has ended. receive updates p.
func (r *Response) receive(to *Request, waited error, p *Progress) error {
	s := &r.sending
	head, err := r.conn.head(r.ctx, to, waited, p)
	if err != nil {
		err = errorOf(r.ctx, s, err)
		r.unhook()
		_ = r.conn.Close()
		if to.Body == nil && s.ended != nil {
			<-s.ended // soon, because the connection is closed
		}
	}
	if s.clock != nil {
		s.clock.stop()
		p.Sent, p.Waits = s.clock.read()
	}
	p.Begun = s.written.Load() > 0
	p.InFull = s.over() && s.err == nil
	if err != nil {
		return err
	}
	if !s.over() {
		_ = r.conn.SetWriteDeadline(time.Time{}) // the deadline was for the head; if this fails, so do reads
	}
	r.Response, r.Received = head.Response, head.Head
	switch r.whole = !http1.HasBody(r.Response, to.Method); {
	case len(r.TransferEncoding) > 0:
		r.chunks = &http1.Chunks{In: r.conn.In, MaxTrailer: int(r.conn.maxHead)}
	default:
		r.left = r.ContentLength
	}
	return nil
}

// received is the head of a response.
type received struct {
	*http.Response
	http1.Head
}

// head reads the head of the response and forwards 1xx responses. err is the result of the wait for the first
// byte. head updates p.
func (c *conn) head(ctx context.Context, r *Request, err error, p *Progress) (head received, _ error) {
	if c.rescue(err) {
		err = cmp.Or(ctx.Err(), c.Await()) // the new deadline must not undo an interruption by ctx
	}
	withdrawn := r.Withdrawal.leave(err == nil)
	switch {
	case err != nil && withdrawn:
		return received{}, ErrWithdrawn
	case err != nil:
		return received{}, err
	}
	p.Answered = true
	if withdrawn { // too late: the response has started
		if err := cmp.Or(c.SetReadDeadline(r.Deadline), ctx.Err()); err != nil { // the deadline must not undo an interruption by ctx
			return received{}, err
		}
	}
	for interims := 1; ; interims++ {
		text, err := c.headText()
		if err == nil {
			head.Response, head.Head, err = http1.Response(text, r.Method) //nolint:bodyclose // a head has no body
		}
		switch {
		case err != nil:
			return received{}, err
		case head.StatusCode < 100:
			return received{}, fmt.Errorf("invalid status %d", head.StatusCode)
		case head.StatusCode >= 200 || head.StatusCode == http.StatusSwitchingProtocols:
			if !head.Plain {
				err = ambiguous(head.Response)
			}
			return head, err
		case head.StatusCode != http.StatusContinue && r.Interim != nil:
			r.Interim.Interim(head.StatusCode, head.Header, head.Head)
		}
		p.Interim, p.Answered = true, false
		if interims > interimBurst {
			select {
			case <-time.After(interimPause):
			case <-ctx.Done():
			}
		}
		if _, err := c.In.Peek(1); err != nil {
			return received{}, err
		}
		p.Answered = true
	}
}

// ambiguous returns an error for heads that parsers understand differently: a carriage return within the
// status line is a line end for some, and a field name with a space, as in "Content-Length : 2", is
// not a Content-Length for net/http.
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

// Unframed reports whether the body has neither a Content-Length nor chunked encoding. It ends
// with the connection, so a truncated body cannot be detected.
func (r *Response) Unframed() bool {
	return r.ContentLength < 0 && len(r.TransferEncoding) == 0 && r.Body != http.NoBody
}

// Ready reports whether the first Read will not block.
func (r *Response) Ready() bool {
	switch {
	case r.whole, r.failed != nil:
		return true
	case !r.conn.Readable():
		return false
	}
	return r.chunks == nil || r.conn.Failed != nil || r.chunks.Ready()
}

// Complete reports whether a whole body with a Content-Length was received, so that no Read will block.
func (r *Response) Complete() bool {
	return r.whole || r.failed == nil && r.ContentLength >= 0 && int64(r.conn.In.Buffered()) >= r.ContentLength
}

// Read reads the body. It blocks at most until Until, and until the context of Do
// ends. At the end of the body it returns io.EOF, and Trailer is complete. After an error it returns the same error, also
// after Close.
func (r *Response) Read(p []byte) (n int, _ error) {
	if r.failed == nil {
		n, r.failed = r.read(p)
	}
	return n, r.failed
}

func (r *Response) read(p []byte) (int, error) {
	if r.whole {
		return 0, io.EOF
	}
	if r.ContentLength < 0 || int64(r.conn.In.Buffered()) < r.left {
		_ = r.conn.SetReadDeadline(r.Until) // fails only on a closed connection
		if r.ctx.Err() != nil {             // the deadline must not undo an interruption
			return 0, context.Cause(r.ctx)
		}
		if failed := r.sending.body.Load(); failed != nil {
			return 0, failed
		}
	}
	n, err := r.readBody(p)
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

// readBody reads the bytes that have been received, or blocks until there are some.
func (r *Response) readBody(p []byte) (int, error) {
	if r.chunks != nil {
		n, err := r.chunks.Read(p)
		for name, values := range r.chunks.Trailer {
			if r.Trailer == nil {
				r.Trailer = make(http.Header)
			}
			r.Trailer[name] = values
		}
		return n, err
	}
	if r.ContentLength < 0 {
		return r.conn.In.Read(p)
	}
	n, err := r.conn.In.Read(p[:min(int64(len(p)), r.left)])
	switch r.left -= int64(n); {
	case r.left == 0:
		return n, io.EOF
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// lastWrite is the time to send the rest of a body after the whole response was received.
const lastWrite = 50 * time.Millisecond

// Close ends the exchange. The connection goes back to the pool if the whole request was sent, the whole response was
// read, and there was no error.
func (r *Response) Close() {
	calm := r.unhook() // from now on it is not interrupted
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
