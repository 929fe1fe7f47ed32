// Package upstreamclient sends requests to upstreams over HTTP/1.1 and reads
// their answers, on the goroutine of the caller. It keeps connections for later
// requests. A second goroutine runs only while a connection is made, and while a
// large body is sent: an upstream may answer before it has read all of it.
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

// Config says how upstreams are reached. All fields are required.
type Config struct {
	// Dial connects to an upstream until ctx ends.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Idle is how many connections to each upstream are pooled for later
	// requests, and IdleTimeout for how long.
	Idle        int
	IdleTimeout time.Duration
	// MaxHead bounds the head of an answer, and of each interim answer, in bytes. Each has 1,000 lines at most.
	MaxHead int64
}

// Client sends requests to upstreams. It is safe for concurrent use.
type Client struct {
	cfg Config

	mu        sync.Mutex
	dials     *sync.WaitGroup      // that Close waits for
	upstreams map[string]*upstream // by address
	sweeper   *time.Timer          // nil while there is nothing to sweep
	closed    bool
}

// New returns a Client.
func New(cfg Config) *Client {
	return &Client{cfg: cfg, dials: new(sync.WaitGroup), upstreams: make(map[string]*upstream)}
}

// The reasons why an exchange ended.
var (
	// ErrDeadline: the head of an answer did not come before the deadline.
	ErrDeadline = errors.New("no answer began before the deadline")
	// ErrSilent: Read waited for so long as it may.
	ErrSilent = errors.New("the upstream was silent for too long")
)

// DialError is a connection that could not be made.
type DialError struct {
	Timeout bool // it took longer than the connect timeout
	Err     error
}

func (e *DialError) Error() string { return e.Err.Error() }
func (e *DialError) Unwrap() error { return e.Err }

// Progress is how far a request got. It tells whether the request may be sent again.
type Progress struct {
	Reused   bool // it was sent on a pooled connection
	Begun    bool // some of it may have reached the upstream
	InFull   bool // all of it was sent
	Interim  bool // a 1xx came
	Answered bool // at least one byte of an answer came, a 1xx apart

	// Of a large body: when the upstream took the last piece, and whether the next one was awaited from the
	// submitter.
	Sent  time.Time
	Waits bool
}

// Stale reports whether a pooled connection brought nothing: the upstream may have
// closed it just as the request was sent, which does not speak against the upstream.
func (p Progress) Stale() bool { return p.Reused && !p.Interim && !p.Answered }

// Do sends a request and waits for the head of the answer. It ends when ctx does:
// the error is then ctx's cause. Errors of a dial are *DialError, those of the body *BodyError.
//
// Thousands of requests wait at one time: what comes before the wait and after it is
// in functions of their own, so that the stack is small meanwhile.
func (c *Client) Do(ctx context.Context, r *Request) (*Response, Progress, error) {
	var p Progress
	for {
		response, err := c.begin(ctx, r, &p)
		if err != nil {
			return nil, p, err
		}
		if response.sending.piece == nil {
			err = response.conn.Await()
		} else if err = response.conn.Ask(response.sending.message, &response.sending, p.Reused); errors.Is(err, lazyconn.ErrStale) {
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

// begin gets a connection and the request ready for it. A request with a large body is on
// its way then. It notes in p how.
func (c *Client) begin(ctx context.Context, r *Request, p *Progress) (*Response, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	cn, err := c.connect(ctx, r)
	p.Reused = err == nil && cn.reused // a stale one may have come before
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

// errorOf is the error that an exchange ends with.
func errorOf(ctx context.Context, s *sending, err error) error {
	switch {
	case s.body.Load() != nil: // first: net/http also ends ctx when a read of the body was too slow
		return s.body.Load()
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ErrDeadline
	}
	return err
}
