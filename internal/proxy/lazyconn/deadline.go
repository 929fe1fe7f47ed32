package lazyconn

import (
	"cmp"
	"errors"
	"os"
	"time"
)

// deadline is the deadline of reads or of writes. To set the deadline of a socket costs more than a lock, and most jobs end
// long before their deadline. So an earlier deadline of the socket is kept, and a call that it ends is repeated.
// Times count from Buffers.since, which takes less memory than a time.Time; 0 means none.
type deadline struct{ wanted, armed time.Duration } // armed is the socket's deadline

// set sets a deadline. arm sets that of the socket.
func (c *Conn) set(d *deadline, at time.Time, arm func(time.Time) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d.wanted = 0; !at.IsZero() {
		d.wanted = at.Sub(c.buffers.since)
	}
	if c.Lazy() && d.armed != 0 && (d.wanted == 0 || d.wanted >= d.armed) {
		return nil
	}
	d.armed = d.wanted
	return arm(at)
}

// early reports whether a call that ended with err ended before the wanted deadline, and must be repeated. The socket then has
// the wanted deadline.
func (c *Conn) early(d *deadline, err error, arm func(time.Time) error) bool {
	if err == nil || !c.Lazy() || !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var until time.Time
	if d.wanted != 0 {
		until = c.buffers.since.Add(d.wanted)
	}
	if d.wanted != 0 && !time.Now().Before(until) {
		return false
	}
	d.armed = d.wanted
	return arm(until) == nil
}

// SetReadDeadline implements net.Conn. It can return no error although the connection is closed, as the following methods can.
func (c *Conn) SetReadDeadline(at time.Time) error {
	return c.set(&c.reads, at, c.Conn.SetReadDeadline)
}

func (c *Conn) SetWriteDeadline(at time.Time) error {
	return c.set(&c.writes, at, c.Conn.SetWriteDeadline)
}

func (c *Conn) SetDeadline(at time.Time) error {
	return cmp.Or(c.SetReadDeadline(at), c.SetWriteDeadline(at))
}

func (c *Conn) readEarly(err error) bool { return c.early(&c.reads, err, c.Conn.SetReadDeadline) }

func (c *Conn) wroteEarly(err error) bool { return c.early(&c.writes, err, c.Conn.SetWriteDeadline) }
