package upstreamclient

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

// maxDials bounds the connections to one upstream that are being made at one
// time: a burst of requests must not overrun the upstream's queue of connections.
const maxDials = 32

// upstream is the client's part for one address: pooled connections, and requests that wait for one.
type upstream struct {
	idle    []*conn   // the one used last is the last
	waiting []*waiter // in the order of their coming
	dialing int
	served  uint64 // how often it took a connection, or served a request to its end
}

// waiter is a request that waits for a connection.
type waiter struct {
	since time.Time
	fresh bool          // only a new one will do
	got   chan dialling // has room for one
}

// dialling is what a waiter gets.
type dialling struct {
	conn *conn
	err  error
}

// Close closes the connections that no request uses, and waits for those that are being made.
// Those in use are closed after their requests.
func (c *Client) Close() {
	c.cancel()
	c.mu.Lock()
	c.closed = true
	for _, u := range c.upstreams {
		closeAll(u.idle)
		u.idle = nil
	}
	c.mu.Unlock()
	c.dials.Wait()
}

func closeAll(conns []*conn) {
	for _, cn := range conns {
		_ = cn.Close()
	}
}

// at is the part for an address. The lock must be held.
func (c *Client) at(address string) *upstream {
	u := c.upstreams[address]
	if u == nil {
		u = new(upstream)
		c.upstreams[address] = u
	}
	return u
}

// connect returns a connection for the request: a pooled one, or the first
// that is made or given back. I/O on it ends at the request's deadline. Ask looks whether a
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
	if n := len(u.idle); n > 0 && !r.Fresh {
		cn := u.idle[n-1]
		u.idle = u.idle[:n-1]
		c.mu.Unlock()
		return cn, nil
	}
	w := &waiter{since: time.Now(), fresh: r.Fresh, got: make(chan dialling, 1)}
	u.waiting = append(u.waiting, w)
	c.dialMore(r.Address, u, r.ConnectTimeout)
	c.mu.Unlock()

	var late <-chan time.Time
	if !r.Deadline.IsZero() {
		late = time.After(time.Until(r.Deadline))
	}
	select {
	case d := <-w.got:
		return d.conn, d.err
	case <-ctx.Done():
		c.leave(r.Address, w)
		return nil, context.Cause(ctx)
	case <-late:
		c.leave(r.Address, w)
		return nil, ErrDeadline
	}
}

// leave takes a waiter out. What it was given meanwhile goes to another.
func (c *Client) leave(address string, w *waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.at(address)
	if i := slices.Index(u.waiting, w); i >= 0 {
		u.waiting = slices.Delete(u.waiting, i, i+1)
		return
	}
	if d := <-w.got; d.conn != nil { // it was given under the lock
		c.put(u, d.conn)
	}
}

// dialMore makes as many connections as requests wait for, within bounds. The
// lock must be held.
func (c *Client) dialMore(address string, u *upstream, timeout time.Duration) {
	for !c.closed && u.dialing < min(len(u.waiting), maxDials) {
		u.dialing++
		served := u.served
		c.dials.Go(func() { c.dial(address, u, served, timeout) })
	}
}

// dial makes a connection and gives it, or its failure, to the request that has
// waited longest. A time-out is for all requests that came before the dial began. It
// is for none if the upstream took a connection or served a request meanwhile, beyond those
// served before: then its queue of connections is full, and the requests wait for their turn.
func (c *Client) dial(address string, u *upstream, served uint64, timeout time.Duration) {
	started := time.Now()
	ctx, cancel := context.WithTimeout(c.ctx, timeout)
	defer cancel()
	nc, err := c.cfg.Dial(ctx, "tcp", address)
	late := time.Since(started) >= timeout

	c.mu.Lock()
	defer c.mu.Unlock()
	u.dialing--
	switch {
	case err == nil:
		u.served++
		c.put(u, newConn(nc))
	case late && u.served != served:
	default:
		failing := 1
		if late {
			failing = len(u.waiting)
		}
		for ; failing > 0 && len(u.waiting) > 0 && !(late && u.waiting[0].since.After(started)); failing-- {
			u.waiting[0].got <- dialling{err: &DialError{Timeout: late, Err: err}}
			u.waiting = slices.Delete(u.waiting, 0, 1)
		}
	}
	c.dialMore(address, u, timeout)
}

// keep takes back a connection that may serve another request.
func (c *Client) keep(address string, cn *conn) {
	cn.reused = true
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.at(address)
	u.served++
	c.put(u, cn)
}

// put gives a connection to a request that waits, or else keeps it. The lock must be held.
func (c *Client) put(u *upstream, cn *conn) {
	for i, w := range u.waiting {
		if !cn.reused || !w.fresh {
			u.waiting = slices.Delete(u.waiting, i, i+1)
			w.got <- dialling{conn: cn}
			return
		}
	}
	if c.closed || len(u.idle) >= c.cfg.Idle {
		_ = cn.Close()
		return
	}
	cn.reused, cn.sweeps = true, 0
	u.idle = append(u.idle, cn)
	if c.sweeper == nil {
		c.sweeper = time.AfterFunc(c.sweepInterval(), c.sweep)
	}
}

// maxSweeps is how many sweeps a connection may be idle for: one that is idle for more has
// been so for as long as it may, and for a fifth of that longer at most.
const maxSweeps = 5

// sweepInterval is how often idle connections are looked through.
func (c *Client) sweepInterval() time.Duration { return c.cfg.IdleTimeout / maxSweeps }

// sweep closes the connections that have been idle for too long, or that the
// upstream has closed, and forgets the upstreams that have none.
func (c *Client) sweep() {
	looked := make(map[string][]*conn)
	c.mu.Lock()
	for address, u := range c.upstreams {
		looked[address], u.idle = u.idle, nil
	}
	c.mu.Unlock()

	for address, conns := range looked {
		looked[address] = slices.DeleteFunc(conns, func(cn *conn) bool {
			cn.sweeps++
			good := cn.sweeps <= maxSweeps && cn.SetDeadline(time.Time{}) == nil && !cn.More()
			if !good {
				_ = cn.Close()
			}
			return !good
		})
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	c.sweeper = nil
	for address, conns := range looked {
		u := c.at(address)
		room := max(0, c.cfg.Idle-len(u.idle))
		if c.closed {
			room = 0
		}
		extra := max(0, len(conns)-room)
		closeAll(conns[:extra])
		u.idle = append(conns[extra:], u.idle...)
	}
	maps.DeleteFunc(c.upstreams, func(_ string, u *upstream) bool { return len(u.idle)+len(u.waiting)+u.dialing == 0 })
	if len(c.upstreams) > 0 && !c.closed {
		c.sweeper = time.AfterFunc(c.sweepInterval(), c.sweep)
	}
}
