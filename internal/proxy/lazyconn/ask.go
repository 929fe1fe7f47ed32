package lazyconn

import "errors"

// ErrStale: before the message was written, the peer had sent data or closed the connection.
var ErrStale = errors.New("the connection is not idle")

// Sender receives the result of writing a message: the number of bytes written and the
// error. Sent is called once, unless Ask returns ErrStale. The message is not used after the call.
type Sender interface{ Sent(n int, err error) }

// question is the state of a call of Ask.
type question struct {
	sender  Sender // nil after the message was sent
	message []byte
	reused  bool
	stale   bool
}

// Ask writes a message and waits until there is data to read. It returns an error if the
// connection has ended or failed. If a reused connection already has data to read, or has ended, Ask
// writes nothing and returns ErrStale. On a new connection, early data is the response.
//
// Write followed by Await would need one more system call for each message: Await must
// check again for data after it has prepared the poller. Ask prepares the poller once,
// before it checks for early data.
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
	if c.sender != nil { // nothing was written: the connection was interrupted or has failed
		c.sent(0, err)
	}
	return c.Await()
}

// ask checks for early data, writes the message, and later reads the response. It reports whether the wait is over.
func (c *Conn) ask(fd uintptr) bool {
	came := c.fill(fd)
	if c.sender == nil {
		return came
	}
	if c.stale = came && c.reused; c.stale {
		return true
	}
	return c.send(fd) != nil || came // after an error, no data may ever arrive to end the wait
}

// send writes the message.
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
