package upstreamclient

import (
	"bufio"
	"errors"
	"math"
	"net"
	"sync"
	"syscall"
	"time"
)

// conn is a connection to an upstream. One request at a time uses it.
//
// It has a buffer only while there are bytes to read: many requests wait long for
// their answers.
type conn struct {
	net.Conn
	raw       syscall.RawConn // nil where every read waits, as on a pipe
	under     syscall.RawConn // what a TLS connection is made over; nil on others
	kept      bool            // it was idle, or has served another request
	idleSince time.Time

	in     *bufio.Reader // over the conn itself; nil until there is something to read
	left   int64         // how many bytes may still be read from the connection
	failed error         // of a read; it stands for all later ones

	interrupted func() // interrupt, made once

	// A read that does not wait: its two forms, made once, and what they leave.
	whenReady, once func(fd uintptr) bool
	now             bool
	fd              uintptr
	filled          bool
}

// bufferSize is that of a connection's buffer. Larger pieces of a body are read past it.
const bufferSize = 4 << 10

var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, bufferSize) }}

var (
	errAgain    = errors.New("nothing to read yet")
	errLongHead = errors.New("the head of the answer is too long")
)

func newConn(nc net.Conn) *conn {
	c := &conn{Conn: nc, left: math.MaxInt64}
	c.interrupted = c.interrupt
	if secure, ok := nc.(interface{ NetConn() net.Conn }); ok {
		if sc, ok := secure.NetConn().(syscall.Conn); ok {
			c.under, _ = sc.SyscallConn() // fails only on a connection that is closed already
		}
	}
	if sc, ok := nc.(syscall.Conn); ok && canTryRead {
		if raw, err := sc.SyscallConn(); err == nil {
			c.raw = raw
			c.whenReady = c.fill
			c.once = func(fd uintptr) bool {
				c.filled = c.fill(fd)
				return true
			}
		}
	}
	return c
}

// Read reads for the buffer, or past it.
func (c *conn) Read(p []byte) (n int, err error) {
	switch {
	case c.failed != nil:
		return 0, c.failed
	case c.left == 0:
		return 0, errLongHead
	case int64(len(p)) > c.left:
		p = p[:c.left]
	}
	if c.now {
		if n, err = tryRead(c.fd, p); errors.Is(err, errAgain) {
			return 0, err
		}
	} else {
		n, err = c.Conn.Read(p)
	}
	c.left -= int64(n)
	c.failed = err
	return n, err
}

// buffer gives the connection a buffer, if it has none.
func (c *conn) buffer() {
	if c.in != nil {
		return
	}
	in, ok := readers.Get().(*bufio.Reader)
	if !ok {
		panic("BUG: upstreamclient: the pool of readers holds something else")
	}
	in.Reset(c)
	c.in = in
}

// release gives the buffer back. What is in it is lost.
func (c *conn) release() {
	if c.in != nil {
		c.in.Reset(nil)
		readers.Put(c.in)
		c.in = nil
	}
}

// fill reads into the buffer what is there, and reports whether there was
// something, or the reason why there never will be.
func (c *conn) fill(fd uintptr) bool {
	had := c.in != nil
	c.buffer()
	c.now, c.fd = true, fd
	_, err := c.in.Peek(1)
	c.now = false
	if !errors.Is(err, errAgain) {
		return true
	}
	if !had {
		c.release()
	}
	return false
}

// await waits until there is something to read. The error is the reason why
// there never will be.
func (c *conn) await() error {
	if c.in != nil && c.in.Buffered() > 0 {
		return nil
	}
	if c.raw != nil {
		if err := c.raw.Read(c.whenReady); err != nil && c.failed == nil {
			c.failed = err
		}
	}
	c.buffer()
	_, err := c.in.Peek(1)
	return err
}

// more reports whether there is something to read now, or the reason why there
// never will be. Where that cannot be told without waiting, there is not.
func (c *conn) more() bool {
	switch {
	case c.in != nil && c.in.Buffered() > 0, c.failed != nil:
		return true
	case c.raw == nil:
		return c.under != nil && c.ended()
	}
	c.filled = false
	err := c.raw.Read(c.once)
	return c.filled || err != nil
}

// ended reports whether something has come on an idle TLS connection: it is its
// end, for nothing else comes unasked.
func (c *conn) ended() (yes bool) {
	err := c.under.Read(func(fd uintptr) bool {
		yes = hasCome(fd)
		return true
	})
	return yes || err != nil
}

// interrupt makes reads and writes that are under way, and later ones, fail at once.
func (c *conn) interrupt() { _ = c.SetDeadline(time.Unix(1, 0)) } // fails only on a closed connection

// Close closes the connection. Another goroutine may still be writing.
func (c *conn) Close() error {
	c.release()
	return c.Conn.Close()
}
