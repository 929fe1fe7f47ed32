package lazyconn

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Limit bounds the open connections of a listener; further connections wait to be accepted.
// Unlike netutil.LimitListener, it keeps the methods of *net.TCPConn and *net.UnixConn, which are needed to
// wait without a buffer, and to reset or half-close a connection.
type Limit struct {
	open  atomic.Int64
	slots chan struct{} // holds one element for each open connection and each call of Accept
}

// NewLimit returns a limit of at most most connections.
func NewLimit(most int) *Limit { return &Limit{slots: make(chan struct{}, most)} }

// Conns returns the number of open connections and the limit.
func (l *Limit) Conns() (open, most int) { return int(l.open.Load()), cap(l.slots) }

// Over returns a listener that applies the limit to another listener.
func (l *Limit) Over(listener net.Listener) net.Listener {
	return &limited{Listener: listener, Limit: l, closed: make(chan struct{})}
}

type limited struct {
	net.Listener
	*Limit
	closed chan struct{}
	once   sync.Once
}

// Accept waits for a slot, and then for a connection.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	l.open.Add(1)
	leave := sync.OnceFunc(func() {
		l.open.Add(-1)
		<-l.slots
	})
	switch c := c.(type) {
	case *net.TCPConn:
		_ = c.SetKeepAliveConfig(KeepAlive()) // fails only on a closed connection
		return &limitedTCP{c, leave}, nil
	case *net.UnixConn:
		return &limitedUnix{c, leave}, nil
	}
	return &limitedConn{c, leave}, nil
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

type limitedUnix struct {
	*net.UnixConn
	leave func()
}

func (c *limitedUnix) Close() error {
	defer c.leave()
	return c.UnixConn.Close()
}

type limitedConn struct {
	net.Conn
	leave func()
}

// CloseWrite closes the sending side if the connection supports that.
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

// KeepAlive returns TCP keep-alive settings that detect a dead peer within about a minute.
func KeepAlive() net.KeepAliveConfig {
	return net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 10 * time.Second, Count: 3}
}
