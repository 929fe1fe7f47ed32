package lazyconn

import "errors"

// ErrStale: something has come before the message, if only the connection's end.
var ErrStale = errors.New("the connection is not idle")

// Message is what Ask writes.
type Message interface {
	// Bytes is the message. It is used until Sent is called.
	Bytes() []byte
	// Sent is told how much of the message was written, and why that is not all. It is
	// called once, unless Ask returns ErrStale.
	Sent(n int, err error)
}

// question is what a call of Ask is about.
type question struct {
	whenAsked func(fd uintptr) bool // ask, made once
	message   Message               // nil once it was sent
	reused    bool
	stale     bool
}

// Ask writes a message, and waits until there is something to read. The error is the
// reason why there never will be. Where something has come before on a reused connection,
// nothing is written, and the error is ErrStale; on a new one it is the answer.
//
// The poller is made ready for the wait before that look. An Await after a Write makes it
// ready again, and must then look whether something has come meanwhile: one system call
// more for each message.
func (c *Conn) Ask(m Message, reused bool) error {
	if c.raw == nil {
		if reused && c.More() {
			return ErrStale
		}
		m.Sent(c.Conn.Write(m.Bytes()))
		return c.Await()
	}
	c.message, c.reused, c.stale = m, reused, false
	c.rest = m.Bytes()
	err := c.raw.Read(c.whenAsked)
	switch {
	case c.stale:
		c.message, c.rest = nil, nil
		return ErrStale
	case err != nil && c.Failed == nil:
		c.Failed = err
	}
	if c.message != nil {
		c.askLater(err)
	}
	return c.Await()
}

// ask looks, writes what the socket takes, and then reads what has come. It reports
// whether the wait is over.
func (c *Conn) ask(fd uintptr) bool {
	if c.message == nil {
		return c.fill(fd)
	}
	came := c.fill(fd)
	if c.stale = came && c.reused; c.stale {
		return true
	}
	if !c.put(fd) {
		return true
	}
	c.sent(c.unwritten)
	return came || c.unwritten != nil // or nothing may come anymore that ends the wait
}

// askLater writes what a socket did not take at once, unless the connection has failed.
func (c *Conn) askLater(failed error) {
	if failed == nil {
		rest := c.rest
		n, err := c.Write(rest)
		c.rest, failed = rest[n:], err
	}
	c.sent(failed)
}

// sent tells how the message was sent.
func (c *Conn) sent(err error) {
	m, left := c.message, len(c.rest)
	c.message, c.rest = nil, nil
	m.Sent(len(m.Bytes())-left, err)
}
