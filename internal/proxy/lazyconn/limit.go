package lazyconn

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Limit bounds the open connections of a listener; further ones wait to be accepted. It is
// netutil.LimitListener for connections that stay what they are: a server that waits
// without a buffer, resets or half closes a TCP connection needs all of it.
type Limit struct {
	open   atomic.Int64
	places chan struct{} // holds one for each open connection, and for a call of Accept
}

// NewLimit returns a limit of so many connections.
func NewLimit(most int) *Limit { return &Limit{places: make(chan struct{}, most)} }

// Conns is how many connections are open, and how many may be.
func (l *Limit) Conns() (open, most int) { return int(l.open.Load()), cap(l.places) }

// Over returns a listener over another.
func (l *Limit) Over(listener net.Listener) net.Listener {
	return &limited{Listener: listener, Limit: l, closed: make(chan struct{})}
}

type limited struct {
	net.Listener
	*Limit
	closed chan struct{}
	once   sync.Once
}

// Accept waits for a place, and then for a connection.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	l.open.Add(1)
	leave := sync.OnceFunc(func() {
		l.open.Add(-1)
		<-l.places
	})
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return &limitedConn{c, leave}, nil
	}
	_ = tcp.SetKeepAliveConfig(KeepAlive()) // fails only on a connection that is closed already
	return &limitedTCP{tcp, leave}, nil
}

// Close closes the listener. Open connections stay.
func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type limitedTCP struct {
	*net.TCPConn
	leave func()
}

func (c *limitedTCP) Close() error {
	defer c.leave()
	return c.TCPConn.Close()
}

type limitedConn struct {
	net.Conn
	leave func()
}

// CloseWrite closes the sending side, where that is possible alone.
func (c *limitedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

func (c *limitedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// KeepAlive finds a dead peer in about a minute, however long it would be silent.
func KeepAlive() net.KeepAliveConfig {
	return net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 10 * time.Second, Count: 3}
}
