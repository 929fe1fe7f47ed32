// Package lazyconn provides connections that hold a read buffer only while there is
// data to read. That saves memory when thousands of connections wait.
package lazyconn

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// Conn is a connection with a read buffer. Only one goroutine at a time can read from
// it, and one can write. WaitForEnd can run beside a writer, not beside a reader.
type Conn struct {
	net.Conn
	// In reads from the connection through the buffer; nil while there is no buffer.
	In *bufio.Reader
	// Failed is the first error of a read. All later reads return it.
	Failed error

	buffers *Buffers
	secure  bool            // the connection uses TLS
	now     bool            // Read must not block
	raw     syscall.RawConn // the socket, below TLS if that is used; nil if there is no socket, as on a pipe

	// The functions fill, ask and put, which raw calls until they return true. They are fields to save
	// allocations.
	whenReady, whenSent, whenTaken func(fd uintptr) bool

	before []byte // read before In reads from the connection

	fd uintptr // set if now

	rest      []byte // unwritten bytes of a write
	unwritten error  // the error of the write of rest

	outgoing

	mu            sync.Mutex // guards the deadlines
	reads, writes deadline
}

// Buffers are shared by connections.
type Buffers struct {
	pool  sync.Pool
	since time.Time
}

// NewBuffers returns a pool of buffers of the given size. Larger reads bypass the buffer.
func NewBuffers(size int) *Buffers {
	return &Buffers{pool: sync.Pool{New: func() any { return bufio.NewReaderSize(nil, size) }}, since: time.Now()}
}

// errAgain is the error of a read or write that would block, like the system's EAGAIN.
var errAgain = errors.New("the read or write would block")

// New returns a connection over nc. It has no buffer yet.
func New(nc net.Conn, buffers *Buffers) *Conn {
	c := &Conn{Conn: nc, buffers: buffers}
	if secure, ok := nc.(interface{ NetConn() net.Conn }); ok {
		c.secure, nc = true, secure.NetConn()
	}
	if sc, ok := nc.(syscall.Conn); ok && canTryRead {
		c.raw, _ = sc.SyscallConn() // fails only on a closed connection
	}
	c.whenReady, c.whenSent, c.whenTaken = c.fill, c.sendAndAwait, c.put
	return c
}

// Lazy reports whether the connection can wait without a buffer. On other connections every read blocks.
func (c *Conn) Lazy() bool { return c.raw != nil && !c.secure }

// Unread makes In return bytes that were already read from the connection, before those that follow.
func (c *Conn) Unread(p []byte) {
	c.before = p
	c.buffer()
}

// Read implements io.Reader for the buffer.
func (c *Conn) Read(p []byte) (n int, err error) {
	switch {
	case len(c.before) > 0:
		n = copy(p, c.before)
		if c.before = c.before[n:]; len(c.before) == 0 {
			c.before = nil // for the garbage collector
		}
		return n, nil
	case c.Failed != nil:
		return 0, c.Failed
	}
	if c.now {
		if n, err = tryRead(c.fd, p); errors.Is(err, errAgain) {
			return 0, err
		}
	} else {
		for early := true; early; early = c.readEarly(err) {
			n, err = c.Conn.Read(p)
		}
		err = c.truncated(err)
	}
	c.Failed = err
	return n, err
}

// truncated returns the error of a read. A TLS connection that ends without close_notify may have been cut by an
// attacker, so its end becomes io.ErrUnexpectedEOF (RFC 9112, 9.8).
func (c *Conn) truncated(err error) error {
	if !c.secure || !errors.Is(err, io.EOF) {
		return err
	}
	below, ok := c.Conn.(interface{ NetConn() net.Conn }).NetConn().(interface{ Truncated() bool })
	if ok && below.Truncated() {
		return io.ErrUnexpectedEOF
	}
	return err
}

// buffer gives the connection a buffer, if it has none.
func (c *Conn) buffer() {
	if c.In == nil {
		c.In = c.buffers.pool.Get().(*bufio.Reader)
		c.In.Reset(c)
	}
}

// Release returns the buffer to the pool. Its contents are lost.
func (c *Conn) Release() {
	if c.In != nil {
		c.In.Reset(nil)
		c.buffers.pool.Put(c.In)
		c.In = nil
	}
}

// fill reads available data into the buffer without blocking. It returns true if there
// was data, or if the connection has ended or failed.
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

// read calls f until it returns true, each time that there is data to read, or until the read deadline.
func (c *Conn) read(f func(fd uintptr) bool) (err error) {
	for early := true; early; early = c.readEarly(err) {
		err = c.raw.Read(f)
	}
	return err
}

// Await blocks until there is data to read. It returns an error if the connection has
// ended or failed.
func (c *Conn) Await() error {
	if c.In != nil && c.In.Buffered() > 0 {
		return nil
	}
	if c.Lazy() {
		if err := c.read(c.whenReady); err != nil && c.Failed == nil {
			c.Failed = err
		}
	}
	c.buffer()
	_, err := c.In.Peek(1)
	return err
}

// Readable reports whether a read would return at once, with data or with an error. It returns false
// if that cannot be found out without blocking. Data on an idle TLS connection counts as its end, because a
// peer sends nothing else without a request.
func (c *Conn) Readable() bool {
	switch {
	case c.In != nil && c.In.Buffered() > 0, c.Failed != nil:
		return true
	case c.raw == nil:
		return false
	}
	var arrived bool
	err := c.read(func(fd uintptr) bool {
		if c.secure {
			_, err := peek(fd)
			arrived = !errors.Is(err, errAgain)
		} else {
			arrived = c.fill(fd)
		}
		return true
	})
	if err != nil && c.Failed == nil {
		c.Failed = err
	}
	return arrived || c.Failed != nil
}

// Arrived reports whether bytes from the peer wait in the socket, whatever the read deadline. It reads none of them.
func (c *Conn) Arrived() (arrived bool) {
	if c.raw == nil {
		return false
	}
	err := c.raw.Control(func(fd uintptr) {
		n, err := peek(fd)
		arrived = n > 0 && err == nil
	})
	return err == nil && arrived
}

// Drained reports whether all received bytes were read. It must be called before the
// connection waits for its next use, because surplus bytes would be read as the next
// response. It leaves the read deadline in the past. Without TLS, SendAndAwait and Readable detect
// surplus bytes. With TLS they cannot detect bytes that the TLS layer has already received: whole
// records or a part of a record.
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

// WaitForEnd waits, without reading, until the peer closes the connection or sends
// data, or until the read deadline. It reports whether the connection has ended.
// There must be no concurrent read.
func (c *Conn) WaitForEnd() (ended bool) {
	err := c.read(func(fd uintptr) (over bool) {
		n, err := peek(fd)
		over = !errors.Is(err, errAgain)
		ended = over && n == 0
		return over
	})
	return err == nil && ended
}

// Write writes all of p. It blocks while the peer does not read, until the write deadline.
func (c *Conn) Write(p []byte) (int, error) {
	if !c.Lazy() {
		return c.Conn.Write(p)
	}
	c.rest = p
	var err error
	for early := true; early; early = c.wroteEarly(err) {
		err = c.raw.Write(c.whenTaken)
	}
	if err == nil {
		err = c.unwritten
	}
	n := len(p) - len(c.rest)
	c.rest = nil
	return n, err
}

// WriteBuffers writes all parts with one system call if the socket takes them at once.
func (c *Conn) WriteBuffers(parts net.Buffers) (err error) {
	for early := true; early; early = c.wroteEarly(err) {
		_, err = parts.WriteTo(c.Conn)
	}
	return err
}

// put writes as much of rest as the socket takes now. It returns true when all is written or the write
// has failed.
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
