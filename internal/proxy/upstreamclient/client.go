// Package upstreamclient sends requests to upstreams over HTTP/1.1 and reads
// their answers, on the goroutine of the caller. It keeps connections for later
// requests. A second goroutine runs only while a large body is sent: an upstream
// may answer before it has read all of it.
package upstreamclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Config says how upstreams are reached. All fields but Dial are required.
type Config struct {
	// Dial connects to an upstream until ctx ends; nil dials TCP.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Idle is how many connections to each upstream are kept for later
	// requests, and IdleTimeout for how long.
	Idle        int
	IdleTimeout time.Duration
	// MaxHead bounds the head of an answer, and of each interim answer, in bytes.
	MaxHead int64
}

// Client sends requests to upstreams. It is safe for concurrent use.
type Client struct {
	cfg Config

	mu      sync.Mutex
	idle    map[string][]*conn // by address; the one used last is the last
	sweeper *time.Timer        // nil while no connection is idle
	closed  bool
}

// New returns a Client. Close it when no request is under way.
func New(cfg Config) (*Client, error) {
	if cfg.Idle <= 0 || cfg.IdleTimeout <= 0 || cfg.MaxHead <= 0 {
		return nil, fmt.Errorf("upstreamclient: Idle %d, IdleTimeout %v and MaxHead %d must be positive", cfg.Idle, cfg.IdleTimeout, cfg.MaxHead)
	}
	if cfg.Dial == nil {
		cfg.Dial = (&net.Dialer{}).DialContext
	}
	return &Client{cfg: cfg, idle: make(map[string][]*conn)}, nil
}

// Close closes the connections that no request uses. Those in use are closed
// after their requests.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, conns := range c.idle {
		closeAll(conns)
	}
	clear(c.idle)
	if c.sweeper != nil {
		c.sweeper.Stop()
		c.sweeper = nil
	}
}

func closeAll(conns []*conn) {
	for _, cn := range conns {
		_ = cn.Close()
	}
}

// DialError is a connection that could not be made.
type DialError struct {
	Timeout bool // it took longer than the connect timeout
	Err     error
}

func (e *DialError) Error() string { return e.Err.Error() }
func (e *DialError) Unwrap() error { return e.Err }

// connect returns a connection to the upstream: one that is kept, unless fresh
// is asked for, or else a new one. I/O on it ends at the deadline.
func (c *Client) connect(ctx context.Context, r *Request) (*conn, error) {
	for !r.Fresh {
		cn := c.take(r.Address)
		if cn == nil {
			break
		}
		if cn.SetDeadline(r.Deadline) == nil && !cn.more() {
			cn.reused = true
			return cn, nil
		}
		_ = cn.Close() // the upstream has closed it, or sent what nobody asked for
	}
	bound := time.Now().Add(r.ConnectTimeout)
	ofConnect := r.Deadline.IsZero() || bound.Before(r.Deadline)
	if !ofConnect {
		bound = r.Deadline
	}
	dialing, cancel := context.WithDeadline(ctx, bound)
	defer cancel()
	nc, err := c.cfg.Dial(dialing, "tcp", r.Address)
	if err != nil {
		late := ctx.Err() == nil && (errors.Is(dialing.Err(), context.DeadlineExceeded) || !time.Now().Before(bound))
		if late && !ofConnect {
			return nil, fmt.Errorf("%w: %w", ErrDeadline, err)
		}
		return nil, &DialError{Timeout: late, Err: err}
	}
	cn := newConn(nc)
	if err := cn.SetDeadline(r.Deadline); err != nil {
		return nil, errors.Join(&DialError{Err: err}, cn.Close())
	}
	return cn, nil
}

// take takes the connection that was used last, if one is kept.
func (c *Client) take(address string) *conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	conns := c.idle[address]
	if len(conns) == 0 {
		return nil
	}
	cn := conns[len(conns)-1]
	conns[len(conns)-1] = nil
	c.idle[address] = conns[:len(conns)-1]
	return cn
}

// keep keeps a connection for a later request.
func (c *Client) keep(address string, cn *conn) {
	cn.idleSince = time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	conns := c.idle[address]
	if c.closed || len(conns) >= c.cfg.Idle {
		_ = cn.Close()
		return
	}
	c.idle[address] = append(conns, cn)
	if c.sweeper == nil {
		c.sweeper = time.AfterFunc(c.sweepInterval(), c.sweep)
	}
}

// sweepInterval is how often idle connections are looked through.
func (c *Client) sweepInterval() time.Duration { return c.cfg.IdleTimeout / 5 }

// sweep closes the connections that have been idle for too long, or that the
// upstream has closed.
func (c *Client) sweep() {
	c.mu.Lock()
	all := c.idle
	c.idle = make(map[string][]*conn, len(all))
	c.mu.Unlock()

	oldest := time.Now().Add(-c.cfg.IdleTimeout)
	for address, conns := range all {
		var good []*conn
		for _, cn := range conns {
			if cn.idleSince.After(oldest) && cn.SetDeadline(time.Time{}) == nil && !cn.more() {
				good = append(good, cn)
			} else {
				_ = cn.Close()
			}
		}
		if len(good) > 0 {
			all[address] = good
		} else {
			delete(all, address)
		}
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	c.sweeper = nil
	for address, conns := range all {
		room := c.cfg.Idle - len(c.idle[address])
		if c.closed {
			room = 0
		}
		extra := max(0, len(conns)-room)
		closeAll(conns[:extra])
		if len(conns) > extra {
			c.idle[address] = append(conns[extra:], c.idle[address]...)
		}
	}
	if len(c.idle) > 0 && !c.closed {
		c.sweeper = time.AfterFunc(c.sweepInterval(), c.sweep)
	}
}
