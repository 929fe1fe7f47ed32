// Package lazyconn is connections that have a buffer only while there are bytes
// to read. Thousands of them may wait at one time, most of them for long.
package lazyconn

import (
	"bufio"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// Conn is a connection with a buffer for reading. One goroutine at a time reads from
// it, but for WaitForEnd, and one writes.
type Conn struct {
	net.Conn
	// In reads from the connection, through the buffer; nil while there is none.
	In *bufio.Reader
	// Count, if it is not nil, is given all that is read; its error ends reading after that.
	Count func(p []byte) error
	// Failed is the error of a read; it stands for all later ones.
	Failed error

	buffers *Buffers
	raw     syscall.RawConn // nil where every read waits, as on a pipe
	secure  bool            // by TLS
	under   syscall.RawConn // what a TLS connection is made over; nil on others

	// A read that does not wait: its two forms, made once, and what they leave.
	whenReady, once func(fd uintptr) bool
	now             bool
	fd              uintptr
	filled          bool

	// A write: its form, made once, and what it leaves.
	whenTaken func(fd uintptr) bool
	rest      []byte
	unwritten error

	question // of Ask
}

// Buffers are shared by connections.
type Buffers struct{ pool sync.Pool }

// NewBuffers returns buffers of so many bytes. Larger pieces are read past them.
func NewBuffers(size int) *Buffers {
	return &Buffers{pool: sync.Pool{New: func() any { return bufio.NewReaderSize(nil, size) }}}
}

// errAgain: a call would have to wait.
var errAgain = errors.New("nothing can be read or written yet")

// New returns a connection over nc. It has no buffer yet.
func New(nc net.Conn, buffers *Buffers) *Conn {
	c := &Conn{Conn: nc, buffers: buffers}
	if secure, ok := nc.(interface{ NetConn() net.Conn }); ok {
		c.secure = true
		if sc, ok := secure.NetConn().(syscall.Conn); ok {
			c.under, _ = sc.SyscallConn() // fails only on a connection that is closed already
		}
	}
	if sc, ok := nc.(syscall.Conn); ok && canTryRead {
		if raw, err := sc.SyscallConn(); err == nil {
			c.raw = raw
			c.whenReady = c.fill
			c.whenTaken = c.put
			c.whenAsked = c.ask
			c.once = func(fd uintptr) bool {
				c.filled = c.fill(fd)
				return true
			}
		}
	}
	return c
}

// Lazy reports whether the connection can wait without a buffer.
func (c *Conn) Lazy() bool { return c.raw != nil }

// Read reads for the buffer, or past it.
func (c *Conn) Read(p []byte) (n int, err error) {
	if c.Failed != nil {
		return 0, c.Failed
	}
	if c.now {
		if n, err = tryRead(c.fd, p); errors.Is(err, errAgain) {
			return 0, err
		}
	} else {
		n, err = c.Conn.Read(p)
	}
	if c.Count != nil && err == nil {
		err = c.Count(p[:n])
	}
	c.Failed = err
	return n, err
}

// buffer gives the connection a buffer, if it has none.
func (c *Conn) buffer() {
	if c.In != nil {
		return
	}
	in, ok := c.buffers.pool.Get().(*bufio.Reader)
	if !ok {
		panic("BUG: lazyconn: the pool of buffers holds something else")
	}
	in.Reset(c)
	c.In = in
}

// Release gives the buffer back. What is in it is lost.
func (c *Conn) Release() {
	if c.In != nil {
		c.In.Reset(nil)
		c.buffers.pool.Put(c.In)
		c.In = nil
	}
}

// fill reads into the buffer what is there, and reports whether there was
// something, or the reason why there never will be.
func (c *Conn) fill(fd uintptr) bool {
	had := c.In != nil
	c.buffer()
	c.now, c.fd = true, fd
	_, err := c.In.Peek(1)
	c.now = false
	if !errors.Is(err, errAgain) {
		return true
	}
	if !had {
		c.Release()
	}
	return false
}

// Await waits until there is something to read. The error is the reason why
// there never will be.
func (c *Conn) Await() error {
	if c.In != nil && c.In.Buffered() > 0 {
		return nil
	}
	if c.raw != nil {
		if err := c.raw.Read(c.whenReady); err != nil && c.Failed == nil {
			c.Failed = err
		}
	}
	c.buffer()
	_, err := c.In.Peek(1)
	return err
}

// More reports whether there is something to read now, or the reason why there
// never will be. Where that cannot be told without waiting, there is not.
func (c *Conn) More() bool {
	switch {
	case c.In != nil && c.In.Buffered() > 0, c.Failed != nil:
		return true
	case c.raw == nil:
		return c.under != nil && c.ended()
	}
	if err := c.raw.Read(c.once); err != nil && c.Failed == nil {
		c.Failed = err
	}
	return c.filled || c.Failed != nil
}

// Drained reports whether nothing was received beyond what was read. Call it before the
// connection waits for its next use: bytes that came unasked would be read as the next
// answer. It leaves the read deadline in the past. Ask and More see what comes later, and
// all that there is on a plain connection. What TLS has received and not returned, they
// cannot see: whole records, which a read returns without waiting, and a part of a record.
func (c *Conn) Drained() bool {
	if !c.secure {
		return true
	}
	if partly, ok := c.Conn.(interface{ NetConn() net.Conn }).NetConn().(interface{ InRecord() bool }); ok && partly.InRecord() {
		return false
	}
	if c.SetReadDeadline(time.Unix(1, 0)) != nil {
		return false
	}
	n, err := c.Conn.Read(make([]byte, 1))
	return n == 0 && errors.Is(err, os.ErrDeadlineExceeded)
}

// ended reports whether something has come on an idle TLS connection: it is its
// end, for nothing else comes unasked.
func (c *Conn) ended() (yes bool) {
	err := c.under.Read(func(fd uintptr) bool {
		_, err := peek(fd)
		yes = !errors.Is(err, errAgain)
		return true
	})
	return yes || err != nil
}

// WaitForEnd waits, without reading, until the other side has ended the
// connection or sends something, or until the read deadline. It reports whether
// the connection has ended. Nothing may be read meanwhile.
func (c *Conn) WaitForEnd() (ended bool) {
	err := c.raw.Read(func(fd uintptr) (over bool) {
		n, err := peek(fd)
		over = !errors.Is(err, errAgain)
		ended = over && n == 0
		return over
	})
	return err == nil && ended
}

// Write writes all of p. It waits, until the write deadline, while the other side takes no more.
func (c *Conn) Write(p []byte) (int, error) {
	if c.raw == nil {
		return c.Conn.Write(p)
	}
	c.rest = p
	err := c.raw.Write(c.whenTaken)
	if err == nil {
		err = c.unwritten
	}
	n := len(p) - len(c.rest)
	c.rest = nil
	return n, err
}

// put writes what the socket takes now of what is left, and reports whether that is
// all, or the rest can never be written.
func (c *Conn) put(fd uintptr) bool {
	n, err := tryWrite(fd, c.rest)
	c.rest = c.rest[n:]
	if errors.Is(err, errAgain) {
		return false
	}
	c.unwritten = err
	return true
}

// Close closes the connection. Another goroutine may still be writing.
func (c *Conn) Close() error {
	c.Release()
	return c.Conn.Close()
}
