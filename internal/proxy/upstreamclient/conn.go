package upstreamclient

import (
	"net"
	"time"

	"example.org/pilotfish/internal/proxy/lazyconn"
)

// conn is a connection to an upstream. One request at a time uses it.
type conn struct {
	*lazyconn.Conn
	reused      bool   // it was idle, or has served another request
	sweeps      int    // how many it has been idle for
	interrupted func() // interrupt, made once

	bound    headBound            // of the head that is read
	counting func(p []byte) error // its count, made once
}

// buffers are those of all connections.
var buffers = lazyconn.NewBuffers(4 << 10)

func newConn(nc net.Conn) *conn {
	c := &conn{Conn: lazyconn.New(nc, buffers)}
	c.interrupted = c.interrupt
	c.counting = c.bound.count
	return c
}

// interrupt makes reads and writes that are under way, and later ones, fail at once.
func (c *conn) interrupt() { _ = c.SetDeadline(time.Unix(1, 0)) } // fails only on a closed connection
