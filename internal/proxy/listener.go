package proxy

import (
	"net"
	"sync"
)

// bounded is a listener with so many connections at most; others wait in the
// kernel's queue.
type bounded struct {
	net.Listener
	slots  chan struct{}
	closed chan struct{}
	once   sync.Once
}

func newBounded(l net.Listener, conns int) *bounded {
	return &bounded{Listener: l, slots: make(chan struct{}, conns), closed: make(chan struct{})}
}

func (b *bounded) Accept() (net.Conn, error) {
	select {
	case b.slots <- struct{}{}:
	case <-b.closed:
		return nil, net.ErrClosed
	}
	c, err := b.Listener.Accept()
	if err != nil {
		<-b.slots
		return nil, err
	}
	release := sync.OnceFunc(func() { <-b.slots })
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return &boundedConn{Conn: c, release: release}, nil
	}
	_ = tcp.SetKeepAliveConfig(keepAlive()) // fails only on a connection that is closed already
	return &boundedTCP{TCPConn: tcp, release: release}, nil
}

func (b *bounded) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Listener.Close()
}

// boundedTCP gives its place back once. It stays a TCP connection, which can
// be half closed and reset.
type boundedTCP struct {
	*net.TCPConn
	release func()
}

func (c *boundedTCP) Close() error {
	defer c.release()
	return c.TCPConn.Close()
}

type boundedConn struct {
	net.Conn
	release func()
}

func (c *boundedConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}
