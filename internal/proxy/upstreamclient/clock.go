package upstreamclient

import (
	"context"
	"sync"
	"time"
)

// clock is the first-byte timeout of a request with a large body. It restarts with each piece that
// the upstream takes, and stops while the next piece is read from the submitter, because a slow upload is
// not the upstream's fault.
type clock struct {
	conn       *conn
	ctx        context.Context
	firstByte  time.Duration
	limit      time.Time // zero means none
	withdrawal *Withdrawal

	mu      sync.Mutex
	stopped bool      // the response has started
	sent    time.Time // when the upstream took the last piece
	waits   bool      // the next piece is awaited from the submitter
}

func newClock(ctx context.Context, cn *conn, r *Request) *clock {
	return &clock{conn: cn, ctx: ctx, firstByte: r.FirstByte, limit: r.Limit, withdrawal: r.Withdrawal}
}

// pause stops the clock while the next piece is read from the submitter.
func (c *clock) pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits = true
	c.arm(c.limit)
}

// restart restarts the clock, because the next piece was read or the last piece was sent.
func (c *clock) restart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits, c.sent = false, time.Now()
	until := c.sent.Add(c.firstByte)
	if !c.limit.IsZero() && c.limit.Before(until) {
		until = c.limit
	}
	c.arm(until)
}

// arm sets the deadline of the connection without undoing an interruption. c.mu must be held.
func (c *clock) arm(until time.Time) {
	if c.stopped {
		return
	}
	_ = c.conn.SetDeadline(until) // fails only on a closed connection
	c.withdrawal.again()
	if c.ctx.Err() != nil {
		c.conn.interrupt()
	}
}

// stop ends the clock; the reader of the response sets its own deadlines.
func (c *clock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
}

// read returns when the clock was last restarted and whether it is paused.
func (c *clock) read() (sent time.Time, waits bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent, c.waits
}
