package lazyconn

import "errors"

// ErrStale: before the message was written, the peer had sent data or closed the connection.
var ErrStale = errors.New("the connection is not idle")

// Sender receives the result of writing a message: the number of bytes written and the
// error. Sent is called once, unless SendAndAwait returns ErrStale. The message is not used after the call.
type Sender interface{ Sent(n int, err error) }

// outgoing is the state of a call of SendAndAwait.
type outgoing struct {
	sender  Sender // nil after the message was sent
	message []byte
	reused  bool
	stale   bool
}

// SendAndAwait writes a message and waits until there is data to read. It returns an error if the
// connection has ended or failed. If a reused connection already has data to read, or has ended, SendAndAwait
// writes nothing and returns ErrStale. On a new connection, early data is the response.
//
// Write followed by Await would need one more system call for each message: Await must
// check again for data after it has prepared the poller. SendAndAwait prepares the poller once,
// before it checks for early data.
func (c *Conn) SendAndAwait(message []byte, s Sender, reused bool) error {
	if !c.Lazy() {
		if reused && c.Readable() {
			return ErrStale
		}
		s.Sent(c.Conn.Write(message))
		return c.Await()
	}
	c.sender, c.message, c.reused, c.stale = s, message, reused, false
	err := c.read(c.whenSent)
	if c.stale {
		c.sender, c.message = nil, nil
		return ErrStale
	}
	if err != nil && c.Failed == nil {
		c.Failed = err
	}
	if c.sender != nil { // nothing was written: the connection was interrupted or has failed
		c.sent(0, err)
	}
	return c.Await()
}

// sendAndAwait checks for early data, writes the message, and later reads the response. It reports whether the wait is over.
func (c *Conn) sendAndAwait(fd uintptr) bool {
	arrived := c.fill(fd)
	if c.sender == nil {
		return arrived
	}
	if c.stale = arrived && c.reused; c.stale {
		return true
	}
	return c.send(fd) != nil || arrived // after an error, no data may ever arrive to end the wait
}

func (c *Conn) send(fd uintptr) error {
	n, err := tryWrite(fd, c.message)
	if errors.Is(err, errAgain) { // the socket buffer is full
		var more int
		more, err = c.Write(c.message[n:])
		n += more
	}
	c.sent(n, err)
	return err
}

// sent reports the result of writing the message to the sender.
func (c *Conn) sent(n int, err error) {
	s := c.sender
	c.sender, c.message = nil, nil
	s.Sent(n, err)
}
