package lazyconn

import "errors"

// ErrStale: something has come before the message, if only the connection's end.
var ErrStale = errors.New("the connection is not idle")

// Sender is told how much of a message was written, and why that is not all. It is
// called once, unless Ask returns ErrStale. The message is not used after that.
type Sender interface{ Sent(n int, err error) }

// question is what a call of Ask is about.
type question struct {
	whenAsked func(fd uintptr) bool // ask, made once
	sender    Sender                // nil once the message was sent
	size      int
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
func (c *Conn) Ask(message []byte, s Sender, reused bool) error {
	if c.raw == nil {
		if reused && c.More() {
			return ErrStale
		}
		s.Sent(c.Conn.Write(message))
		return c.Await()
	}
	c.sender, c.size, c.reused, c.stale = s, len(message), reused, false
	c.rest = message
	err := c.raw.Read(c.whenAsked)
	switch {
	case c.stale:
		c.sender, c.rest = nil, nil
		return ErrStale
	case err != nil && c.Failed == nil:
		c.Failed = err
	}
	if c.sender != nil { // the socket did not take all of it at once, or the connection has failed
		if err == nil {
			rest := c.rest
			n, failed := c.Write(rest)
			c.rest, err = rest[n:], failed
		}
		c.sent(err)
	}
	return c.Await()
}

// ask looks, writes what the socket takes, and then reads what has come. It reports
// whether the wait is over.
func (c *Conn) ask(fd uintptr) bool {
	if c.sender == nil {
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

// sent tells how the message was sent.
func (c *Conn) sent(err error) {
	s, n := c.sender, c.size-len(c.rest)
	c.sender, c.rest = nil, nil
	s.Sent(n, err)
}
