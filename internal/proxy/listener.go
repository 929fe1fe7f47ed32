package proxy

import (
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// bounded is a listener with so many connections at most; a further one waits. If
// the server tells which are idle, the one that has been idle for longest makes room
// for it: connections that nobody uses must not keep others out.
type bounded struct {
	net.Listener
	most    int
	turns   atomic.Int64 // counts the times that a connection became idle
	waiting atomic.Bool  // a connection waits for a place

	mu     sync.Mutex
	change sync.Cond // a connection was closed or is idle now, or the listener was closed
	open   map[*place]bool
	closed bool
}

// place is that of one connection.
type place struct {
	of   *bounded
	conn net.Conn
	idle atomic.Int64 // the turn at which it became idle; 0 while it is used
	once sync.Once
}

func newBounded(l net.Listener, most int) *bounded {
	b := &bounded{Listener: l, most: most, open: map[*place]bool{}}
	b.change.L = &b.mu
	return b
}

// Accept accepts a connection and waits until there is room for it.
func (b *bounded) Accept() (net.Conn, error) {
	c, err := b.Listener.Accept()
	if err != nil {
		return nil, err
	}
	p := &place{of: b, conn: c}
	if !b.enter(p) {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return &boundedConn{Conn: c, place: p}, nil
	}
	_ = tcp.SetKeepAliveConfig(keepAlive()) // fails only on a connection that is closed already
	return &boundedTCP{TCPConn: tcp, place: p}, nil
}

// enter takes a place; false if the listener is closed first.
func (b *bounded) enter(p *place) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.waiting.Store(false)
	for len(b.open) >= b.most && !b.closed {
		b.waiting.Store(true) // before the look, so that who becomes idle after it tells
		if first := b.longestIdle(); first != nil {
			delete(b.open, first)
			_ = first.conn.Close() // its server finds out and closes it too
			continue
		}
		b.change.Wait()
	}
	b.open[p] = true
	return !b.closed
}

// count is how many connections have a place.
func (b *bounded) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.open)
}

// longestIdle is the connection that has been idle for longest; nil if none is.
func (b *bounded) longestIdle() (first *place) {
	var least int64
	for p := range b.open {
		if since := p.idle.Load(); since > 0 && (first == nil || since < least) {
			first, least = p, since
		}
	}
	return first
}

// note is the server's ConnState. A connection on which nothing has come yet counts
// as idle.
func (b *bounded) note(c net.Conn, state http.ConnState) {
	placed, ok := c.(interface{ at() *place })
	if !ok {
		return
	}
	p := placed.at()
	if state != http.StateNew && state != http.StateIdle {
		p.idle.Store(0)
		return
	}
	p.idle.Store(b.turns.Add(1))
	if b.waiting.Load() {
		b.tell()
	}
}

// tell has who waits for a place look again.
func (b *bounded) tell() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.change.Broadcast()
}

func (b *bounded) Close() error {
	b.mu.Lock()
	b.closed = true
	b.change.Broadcast()
	b.mu.Unlock()
	return b.Listener.Close()
}

// leave gives the place back.
func (p *place) leave() {
	p.once.Do(func() {
		p.of.mu.Lock()
		defer p.of.mu.Unlock()
		delete(p.of.open, p)
		p.of.change.Broadcast()
	})
}

// boundedTCP gives its place back once. It stays a TCP connection, which can
// be half closed and reset.
type boundedTCP struct {
	*net.TCPConn
	place *place
}

func (c *boundedTCP) at() *place { return c.place }

func (c *boundedTCP) Close() error {
	defer c.place.leave()
	return c.TCPConn.Close()
}

type boundedConn struct {
	net.Conn
	place *place
}

func (c *boundedConn) at() *place { return c.place }

func (c *boundedConn) Close() error {
	defer c.place.leave()
	return c.Conn.Close()
}
