package upstreamclient

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// maxDials bounds the connections to one upstream that are being made at one
// time: a burst of requests must not overrun the upstream's queue of connections.
const maxDials = 32

// pool is the connections to all upstreams that no request uses, and the
// requests that wait for one.
type pool struct {
	cfg    Config
	ctx    context.Context // of all dials
	cancel context.CancelFunc
	dials  sync.WaitGroup

	mu        sync.Mutex
	upstreams map[string]*upstream // by address
	sweeper   *time.Timer          // nil while there is nothing to sweep
	closed    bool
}

// upstream is the pool's part for one address.
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

func newPool(cfg Config) *pool {
	p := &pool{cfg: cfg, upstreams: make(map[string]*upstream)}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// close closes the idle connections, and waits for those that are being made.
func (p *pool) close() {
	p.cancel()
	p.mu.Lock()
	p.closed = true
	for _, u := range p.upstreams {
		closeAll(u.idle)
		u.idle = nil
	}
	p.mu.Unlock()
	p.dials.Wait()
}

func closeAll(conns []*conn) {
	for _, cn := range conns {
		_ = cn.Close()
	}
}

// at is the part for an address. The lock must be held.
func (p *pool) at(address string) *upstream {
	u := p.upstreams[address]
	if u == nil {
		u = new(upstream)
		p.upstreams[address] = u
	}
	return u
}

// connect returns a connection for the request: a pooled one, or the first
// that is made or given back. I/O on it ends at the request's deadline. Ask looks whether a
// pooled one is good where it sends the request.
func (p *pool) connect(ctx context.Context, r *Request) (*conn, error) {
	for {
		cn, err := p.get(ctx, r)
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
func (p *pool) get(ctx context.Context, r *Request) (*conn, error) {
	p.mu.Lock()
	u := p.at(r.Address)
	if n := len(u.idle); n > 0 && !r.Fresh {
		cn := u.idle[n-1]
		u.idle = u.idle[:n-1]
		p.mu.Unlock()
		return cn, nil
	}
	w := &waiter{since: time.Now(), fresh: r.Fresh, got: make(chan dialling, 1)}
	u.waiting = append(u.waiting, w)
	p.dialMore(r.Address, u, r.ConnectTimeout)
	p.mu.Unlock()

	var late <-chan time.Time
	if !r.Deadline.IsZero() {
		late = time.After(time.Until(r.Deadline))
	}
	select {
	case d := <-w.got:
		return d.conn, d.err
	case <-ctx.Done():
		p.leave(r.Address, w)
		return nil, context.Cause(ctx)
	case <-late:
		p.leave(r.Address, w)
		return nil, ErrDeadline
	}
}

// leave takes a waiter out. What it was given meanwhile goes to another.
func (p *pool) leave(address string, w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.at(address)
	if i := slices.Index(u.waiting, w); i >= 0 {
		u.waiting = slices.Delete(u.waiting, i, i+1)
		return
	}
	if d := <-w.got; d.conn != nil { // it was given under the lock
		p.put(u, d.conn)
	}
}

// dialMore makes as many connections as requests wait for, within bounds. The
// lock must be held.
func (p *pool) dialMore(address string, u *upstream, timeout time.Duration) {
	for !p.closed && u.dialing < min(len(u.waiting), maxDials) {
		u.dialing++
		served := u.served
		p.dials.Go(func() { p.dial(address, u, served, timeout) })
	}
}

// dial makes a connection and gives it, or its failure, to the request that has
// waited longest. A time-out is for all requests that came before the dial began. It
// is for none if the upstream took a connection or served a request meanwhile, beyond those
// served before: then its queue of connections is full, and the requests wait for their turn.
func (p *pool) dial(address string, u *upstream, served uint64, timeout time.Duration) {
	started := time.Now()
	ctx, cancel := context.WithTimeout(p.ctx, timeout)
	defer cancel()
	nc, err := p.cfg.Dial(ctx, "tcp", address)
	late := time.Since(started) >= timeout

	p.mu.Lock()
	defer p.mu.Unlock()
	u.dialing--
	switch {
	case err == nil:
		u.served++
		p.put(u, newConn(nc))
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
	p.dialMore(address, u, timeout)
}

// keep takes back a connection that may serve another request.
func (p *pool) keep(address string, cn *conn) {
	cn.reused = true
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.at(address)
	u.served++
	p.put(u, cn)
}

// put gives a connection to a request that waits, or else keeps it. The lock must be held.
func (p *pool) put(u *upstream, cn *conn) {
	for i, w := range u.waiting {
		if !cn.reused || !w.fresh {
			u.waiting = slices.Delete(u.waiting, i, i+1)
			w.got <- dialling{conn: cn}
			return
		}
	}
	if p.closed || len(u.idle) >= p.cfg.Idle {
		_ = cn.Close()
		return
	}
	cn.reused, cn.sweeps = true, 0
	u.idle = append(u.idle, cn)
	if p.sweeper == nil {
		p.sweeper = time.AfterFunc(p.sweepInterval(), p.sweep)
	}
}

// maxSweeps is how many sweeps a connection may be idle for: one that is idle for more has
// been so for as long as it may, and for a fifth of that longer at most.
const maxSweeps = 5

// sweepInterval is how often idle connections are looked through.
func (p *pool) sweepInterval() time.Duration { return p.cfg.IdleTimeout / maxSweeps }

// sweep closes the connections that have been idle for too long, or that the
// upstream has closed, and forgets the upstreams that have none.
func (p *pool) sweep() {
	looked := make(map[string][]*conn)
	p.mu.Lock()
	for address, u := range p.upstreams {
		looked[address], u.idle = u.idle, nil
	}
	p.mu.Unlock()

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

	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweeper = nil
	for address, conns := range looked {
		u := p.at(address)
		room := max(0, p.cfg.Idle-len(u.idle))
		if p.closed {
			room = 0
		}
		extra := max(0, len(conns)-room)
		closeAll(conns[:extra])
		u.idle = append(conns[extra:], u.idle...)
	}
	maps.DeleteFunc(p.upstreams, func(_ string, u *upstream) bool { return len(u.idle)+len(u.waiting)+u.dialing == 0 })
	if len(p.upstreams) > 0 && !p.closed {
		p.sweeper = time.AfterFunc(p.sweepInterval(), p.sweep)
	}
}
