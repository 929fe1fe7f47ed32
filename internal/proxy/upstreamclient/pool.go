package upstreamclient

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// maxDials bounds the connections to one upstream that are being made at one
// time: a burst of requests must not overrun the upstream's queue of connections.
const maxDials = 32

// upstream is the client's part for one address. Requests that wait for a pooled connection are served in the order
// of their coming, and get the one that was used last.
type upstream struct {
	idle    []*conn       // the one used last is the last
	there   chan struct{} // has one for each of idle, but for those that are about to be taken
	dialing chan struct{} // has one for each connection that is being made
	served  atomic.Uint64 // how often it took a connection, or served a request to its end
}

// Close closes the connections that no request uses, and waits for those that are being made.
// Those in use are closed after their requests, which may still make others.
func (c *Client) Close() {
	c.mu.Lock()
	begun := c.dials
	c.closed, c.dials = true, new(sync.WaitGroup)
	for _, u := range c.upstreams {
		u.drop(len(u.idle))
	}
	c.mu.Unlock()
	begun.Wait()
}

// drop closes the connections that have been idle for longest. The lock must be held.
func (u *upstream) drop(n int) {
	for ; n > 0; n-- {
		select {
		case <-u.there:
			_ = u.idle[0].Close()
			u.idle = slices.Delete(u.idle, 0, 1)
		default:
			return // the others are about to be taken
		}
	}
}

// take takes the connection that was used last. There is one for each that was received from there. The lock must be held.
func (u *upstream) take() *conn {
	last := len(u.idle) - 1
	cn := u.idle[last]
	u.idle = u.idle[:last]
	return cn
}

// at is the part for an address. The lock must be held.
func (c *Client) at(address string) *upstream {
	u := c.upstreams[address]
	if u == nil {
		u = &upstream{there: make(chan struct{}, c.cfg.Idle), dialing: make(chan struct{}, maxDials)}
		c.upstreams[address] = u
	}
	return u
}

// connect returns a connection for the request: a pooled one, one that is given back, or one that is made
// for it, whichever is there first. I/O on it ends at the request's deadline. Ask looks whether a
// pooled one is good where it sends the request.
func (c *Client) connect(ctx context.Context, r *Request) (*conn, error) {
	for {
		cn, err := c.get(ctx, r)
		if err != nil {
			return nil, err
		}
		if cn.SetDeadline(r.Deadline) == nil && !(cn.reused && !r.AtOnce() && cn.More()) {
			return cn, nil
		}
		_ = cn.Close() // the upstream has closed it, or sent what nobody asked for
		if !cn.reused {
			return nil, &DialError{Err: errors.New("the new connection was closed at once")}
		}
	}
}

// get returns a connection as it is.
func (c *Client) get(ctx context.Context, r *Request) (*conn, error) {
	c.mu.Lock()
	u := c.at(r.Address)
	there := u.there
	if r.Fresh {
		there = nil
	}
	select {
	case <-there:
		defer c.mu.Unlock()
		return u.take(), nil
	default:
	}
	ctx, cancel := context.WithDeadlineCause(ctx, r.Deadline, ErrDeadline)
	defer cancel()
	made := make(chan dialled)
	address, timeout := r.Address, r.ConnectTimeout // r is the caller's again when another connection comes first
	c.dials.Go(func() { c.dial(ctx, u, address, timeout, made) })
	c.mu.Unlock()
	select {
	case <-there:
		c.mu.Lock()
		defer c.mu.Unlock()
		return u.take(), nil
	case d := <-made:
		return d.conn, d.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// dialled is what comes of a dial.
type dialled struct {
	conn *conn
	err  error
}

// dial makes a connection for a request, which may leave meanwhile. One that comes too late for it is pooled. A dial
// that timed out begins anew if the upstream took a connection or served a request meanwhile: then its queue of
// connections is full, and the request waits for its turn.
func (c *Client) dial(ctx context.Context, u *upstream, address string, timeout time.Duration, made chan<- dialled) {
	for {
		served, started := u.served.Load(), time.Now()
		cn, err := c.dialOnce(ctx, u, address, timeout)
		late := err != nil && time.Since(started) >= timeout
		if late && u.served.Load() != served && ctx.Err() == nil {
			continue
		}
		d := dialled{conn: cn}
		if err != nil {
			d.err = &DialError{Timeout: late, Err: err}
		}
		select {
		case made <- d:
		case <-ctx.Done():
			if cn != nil {
				c.keep(address, cn)
			}
		}
		return
	}
}

// dialOnce makes a connection, when it is its turn.
func (c *Client) dialOnce(ctx context.Context, u *upstream, address string, timeout time.Duration) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	select {
	case u.dialing <- struct{}{}:
		defer func() { <-u.dialing }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	nc, err := c.cfg.Dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	u.served.Add(1)
	return newConn(nc, c.cfg.MaxHead), nil
}

// keep pools a connection.
func (c *Client) keep(address string, cn *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.at(address)
	u.served.Add(1)
	if c.closed || len(u.idle) >= c.cfg.Idle {
		_ = cn.Close()
		return
	}
	cn.reused, cn.sweeps = true, 0
	u.idle = append(u.idle, cn)
	u.there <- struct{}{}
	if c.sweeper == nil {
		c.sweeper = time.AfterFunc(c.sweepInterval(), c.sweep)
	}
}

// maxSweeps is how many sweeps a connection may be idle for: one that is idle for more has
// been so for as long as it may, and for a fifth of that longer at most.
const maxSweeps = 5

// sweepInterval is how often idle connections are looked through.
func (c *Client) sweepInterval() time.Duration { return c.cfg.IdleTimeout / maxSweeps }

// sweep closes the connections that have been idle for too long, and forgets the upstreams that have none.
func (c *Client) sweep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, u := range c.upstreams {
		old := 0
		for _, cn := range u.idle {
			if cn.sweeps++; cn.sweeps > maxSweeps {
				old++
			}
		}
		u.drop(old)
	}
	maps.DeleteFunc(c.upstreams, func(_ string, u *upstream) bool { return len(u.idle)+len(u.dialing) == 0 })
	if c.sweeper = nil; len(c.upstreams) > 0 && !c.closed {
		c.sweeper = time.AfterFunc(c.sweepInterval(), c.sweep)
	}
}
