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

// maxDials is the maximum number of concurrent dials to one upstream. A burst of requests
// must not overflow the upstream's accept queue.
const maxDials = 32

// upstream is the client's state for one address. Requests wait for a pooled connection in the order of their
// arrival, and get the most recently used one.
type upstream struct {
	idle    []*conn       // the most recently used one is the last
	there   chan struct{} // has one token for each idle connection; who receives a token takes a connection
	dialing chan struct{} // has one token for each dial in progress
	served  atomic.Uint64 // number of accepted connections and completed requests
}

// Close closes the idle connections and waits for the dials in progress. Connections in use
// are closed after their requests, which may still dial.
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

// drop closes the n connections that have been idle for longest. The lock must be held.
func (u *upstream) drop(n int) {
	for ; n > 0; n-- {
		select {
		case <-u.there:
			_ = u.idle[0].Close()
			u.idle = slices.Delete(u.idle, 0, 1)
		default:
			return // requests have the tokens of the other connections, and will take them
		}
	}
}

// take takes the most recently used connection. The caller must have received a token from u.there. The lock must be held.
func (u *upstream) take() *conn {
	last := len(u.idle) - 1
	cn := u.idle[last]
	u.idle = u.idle[:last]
	return cn
}

// at returns the state for an address. The lock must be held.
func (c *Client) at(address string) *upstream {
	u := c.upstreams[address]
	if u == nil {
		u = &upstream{there: make(chan struct{}, c.cfg.Idle), dialing: make(chan struct{}, maxDials)}
		c.upstreams[address] = u
	}
	return u
}

// connect returns a connection for the request: a pooled one, one that another request returns to the pool, or a new
// one, whichever is available first. The connection has the request's deadline. If SendAndAwait sends the request, it checks
// whether a pooled connection is stale.
func (c *Client) connect(ctx context.Context, r *Request) (*conn, error) {
	for {
		cn, err := c.get(ctx, r)
		if err != nil {
			return nil, err
		}
		if cn.SetDeadline(r.Deadline) == nil && !(cn.reused && !r.AtOnce() && cn.Readable()) {
			return cn, nil
		}
		_ = cn.Close() // the upstream has closed it or sent surplus bytes
		if !cn.reused {
			return nil, &DialError{Err: errors.New("the new connection was closed at once")}
		}
	}
}

// get returns a connection without checking it.
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
	address, timeout := r.Address, r.ConnectTimeout // the dial can outlast this call, and r belongs to the caller
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

// dialled is the result of a dial.
type dialled struct {
	conn *conn
	err  error
}

// dial connects for a request. If the request no longer needs the connection, it goes to the pool. A dial that
// timed out is repeated if the upstream has accepted a connection or completed a request in that time: then its accept
// queue is full, and the request waits for its turn.
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

// dialOnce dials as soon as maxDials allows.
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

// keep returns a connection to the pool.
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
		c.sweeper = time.AfterFunc(c.cfg.IdleTimeout/maxSweeps, c.sweep)
	}
}

// maxSweeps is the number of sweeps that an idle connection survives. So it is closed after its idle
// timeout, at most a fifth of it later.
const maxSweeps = 5

// sweep closes connections after their idle timeout and removes upstreams without connections.
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
		c.sweeper = time.AfterFunc(c.cfg.IdleTimeout/maxSweeps, c.sweep)
	}
}
