// Package upstreamclient is an HTTP/1.1 client for upstreams with a pool of
// connections. It uses the goroutine of the caller. A second goroutine runs only
// while a connection is made, and while a large body is sent, because an upstream
// can respond before it has read the whole body.
package upstreamclient

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"example.org/pilotfish/internal/proxy/lazyconn"
)

// Config is the configuration of a Client. All fields are required.
type Config struct {
	// Dial connects to an upstream until ctx ends.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Idle is the maximum number of idle connections per upstream, and
	// IdleTimeout their idle timeout.
	Idle        int
	IdleTimeout time.Duration
	// MaxHead is the maximum size of the header of a response or 1xx response, in bytes. A header has at most 1,000 lines.
	MaxHead int64
}

// Client sends requests to upstreams. It is safe for concurrent use.
type Client struct {
	cfg Config

	mu        sync.Mutex
	dials     *sync.WaitGroup      // dials in progress, for Close
	upstreams map[string]*upstream // by address
	sweeper   *time.Timer          // nil while there are no upstreams
	closed    bool
}

// New returns a Client.
func New(cfg Config) *Client {
	return &Client{cfg: cfg, dials: new(sync.WaitGroup), upstreams: make(map[string]*upstream)}
}

// The reasons why an exchange ended.
var (
	// ErrDeadline: the response header did not arrive before the deadline.
	ErrDeadline = errors.New("no response began before the deadline")
	// ErrSilent: a Read reached Response.Until.
	ErrSilent = errors.New("the upstream was silent for too long")
)

// DialError is the error of a failed dial.
type DialError struct {
	Timeout bool // it took longer than the connect timeout
	Err     error
}

func (e *DialError) Error() string { return e.Err.Error() }
func (e *DialError) Unwrap() error { return e.Err }

// Progress is how far a request got. It determines whether the request can be sent again.
type Progress struct {
	Reused   bool // it was sent on a pooled connection
	Begun    bool // part of it may have reached the upstream
	InFull   bool // all of it was sent
	Interim  bool // a 1xx response arrived
	Answered bool // at least one byte of the response arrived, not counting 1xx

	// For a large body: when the upstream took the last piece, and whether the client was waiting for the
	// submitter's next piece.
	Sent  time.Time
	Waits bool
}

// Stale reports whether a pooled connection failed before any byte of a response. The
// upstream may have closed it as idle just as the request was sent, so it is not blamed.
func (p Progress) Stale() bool { return p.Reused && !p.Interim && !p.Answered }

// Do sends a request and waits for the response header. If ctx ends, it returns ctx's
// cause. Errors of the dial are *DialError, errors of the request body *BodyError.
//
// Thousands of requests wait here at the same time. The code before and after the wait
// is in functions of its own, to keep the stack small during the wait.
func (c *Client) Do(ctx context.Context, r *Request) (*Response, Progress, error) {
	var p Progress
	for {
		response, err := c.begin(ctx, r, &p)
		if err != nil {
			return nil, p, err
		}
		if response.sending.piece == nil {
			err = response.conn.Await()
		} else if err = response.conn.SendAndAwait(response.sending.message, &response.sending, p.Reused); errors.Is(err, lazyconn.ErrStale) {
			response.retract(r)
			continue
		}
		err = response.receive(r, err, &p)
		if err != nil {
			return nil, p, err
		}
		return response, p, nil
	}
}

// begin gets a connection and prepares the request for it. For a large body it starts to send. It
// updates p.
func (c *Client) begin(ctx context.Context, r *Request, p *Progress) (*Response, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	cn, err := c.connect(ctx, r)
	p.Reused = err == nil && cn.reused // an earlier connection may have been stale
	if err != nil {
		return nil, err
	}
	if !r.Withdrawal.enter(cn) {
		c.keep(r.Address, cn)
		return nil, ErrWithdrawn
	}
	response := &Response{client: c, conn: cn, address: r.Address, ctx: ctx, passes: r.Body != nil}
	response.unhook = onEnd(ctx, cn.interrupted)
	if err := response.sending.start(ctx, cn, r); err != nil {
		response.retract(r)
		return nil, err
	}
	return response, nil
}

// errorOf returns the error of a failed exchange.
func errorOf(ctx context.Context, s *sending, err error) error {
	switch {
	case s.body.Load() != nil: // must be first: net/http also ends ctx when a read of the body timed out
		return s.body.Load()
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ErrDeadline
	}
	return err
}
