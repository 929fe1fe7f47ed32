package lazyconn

import "errors"

// ErrStale: something has come before the message, if only the connection's end.
var ErrStale = errors.New("the connection is not idle")

// Sender is told how much of a message was written, and why that is not all. It is
// called once, unless Ask returns ErrStale. The message is not used after that.
type Sender interface{ Sent(n int, err error) }

// question is what a call of Ask is about.
type question struct {
	sender  Sender // nil once the message was sent
	message []byte
	reused  bool
	stale   bool
}

// Ask writes a message, and waits until there is something to read. The error is the
// reason why there never will be. Where something has come before on a reused connection,
// nothing is written, and the error is ErrStale; on a new one it is the answer.
//
// The poller is made ready for the wait before that look. An Await after a Write makes it
// ready again, and must then look whether something has come meanwhile: one system call
// more for each message.
func (c *Conn) Ask(message []byte, s Sender, reused bool) error {
	if !c.Lazy() {
		if reused && c.More() {
			return ErrStale
		}
		s.Sent(c.Conn.Write(message))
		return c.Await()
	}
	c.sender, c.message, c.reused, c.stale = s, message, reused, false
	err := c.raw.Read(c.whenAsked)
	if c.stale {
		c.sender, c.message = nil, nil
		return ErrStale
	}
	if err != nil && c.Failed == nil {
		c.Failed = err
	}
	if c.sender != nil { // no look was possible: the connection was interrupted, or has failed
		c.sent(0, err)
	}
	return c.Await()
}

// ask looks, writes the message, and then reads what has come. It reports whether the wait is over.
func (c *Conn) ask(fd uintptr) bool {
	came := c.fill(fd)
	if c.sender == nil {
		return came
	}
	if c.stale = came && c.reused; c.stale {
		return true
	}
	return c.send(fd) != nil || came // after an error, nothing may come anymore that ends the wait
}

// send writes the message.
func (c *Conn) send(fd uintptr) error {
	n, err := tryWrite(fd, c.message)
	if errors.Is(err, errAgain) { // the socket does not take all of it at once
		var more int
		more, err = c.Write(c.message[n:])
		n += more
	}
	c.sent(n, err)
	return err
}

// sent tells how the message was sent.
func (c *Conn) sent(n int, err error) {
	s := c.sender
	c.sender, c.message = nil, nil
	s.Sent(n, err)
}
