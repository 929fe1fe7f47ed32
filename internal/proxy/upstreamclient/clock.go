package upstreamclient

import (
	"context"
	"sync"
	"time"
)

// clock bounds the time that an upstream takes for a request with a large body, up to the head of its
// response. The time starts anew with each piece that the upstream has taken, and stands still while the next piece
// is read from the submitter: a slow upload is not the upstream's fault.
type clock struct {
	conn       *conn
	ctx        context.Context
	firstByte  time.Duration
	limit      time.Time // zero is none
	withdrawal *Withdrawal

	mu      sync.Mutex
	stopped bool      // the response has begun
	sent    time.Time // when the upstream took the last piece
	waits   bool      // for the submitter
}

func newClock(ctx context.Context, cn *conn, r *Request) *clock {
	return &clock{conn: cn, ctx: ctx, firstByte: r.FirstByte, limit: r.Limit, withdrawal: r.Withdrawal}
}

// pause stops the clock, because the next piece comes from the submitter.
func (c *clock) pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits = true
	c.arm(c.limit)
}

// restart starts the clock: the next piece is at hand, or the last one was sent.
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

// arm gives the connection a deadline, which must not undo an interruption. c.mu must be held.
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

// stop leaves the deadlines to whoever reads the response.
func (c *clock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
}

// read reports when the clock was started last, and whether it stands still.
func (c *clock) read() (sent time.Time, waits bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent, c.waits
}
