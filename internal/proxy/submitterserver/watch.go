package submitterserver

import "time"

// watchAfter is the age of a job from which a disconnect of its submitter is detected (up to twice
// that). Most jobs are shorter, so they save the cost.
const watchAfter = 20 * time.Millisecond

// begin starts a request. unread is true if it has a body.
func (c *conn) begin(unread bool) {
	c.response.begin()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wanted = time.Time{}
	c.served++
	if c.state = receiving; !unread {
		c.state = answering
		c.watchLater()
	}
}

// watchLater sets the timer. A running timer that fires for an older request restarts.
// c.mu must be held.
func (c *conn) watchLater() {
	if c.ticking {
		return
	}
	c.ticking, c.seen = true, c.served
	if c.timer == nil {
		c.timer = time.AfterFunc(watchAfter, c.tick)
	} else {
		c.timer.Reset(watchAfter)
	}
}

// tick starts the watch of a request that has lasted for watchAfter. Shorter requests leave the timer
// running, because stopping it would cost more.
func (c *conn) tick() {
	c.mu.Lock()
	c.ticking = false
	switch {
	case c.state != answering:
		c.mu.Unlock()
		return
	case c.seen != c.served:
		c.watchLater()
		c.mu.Unlock()
		return
	}
	watch := make(chan struct{})
	c.watch = watch
	_ = c.SetReadDeadline(time.Time{}) // fails only on a closed connection
	c.mu.Unlock()
	defer close(watch)
	if c.WaitForEnd() {
		c.cancel()
	}
}

// end ends the watch after the handler has returned.
func (c *conn) end() {
	c.mu.Lock()
	watch := c.watch
	c.watch, c.state = nil, finishing
	c.mu.Unlock()
	if watch != nil {
		_ = c.SetReadDeadline(time.Unix(1, 0)) // fails only on a closed connection
		<-watch
	}
}

// turn changes the state from receiving to reading before a read of the body that can block, and back after it. The handler can
// have returned. It sets the handler's deadline, and clears the error of an earlier deadline.
func (c *conn) turn(from, to state) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == from {
		c.state = to
		_ = c.SetReadDeadline(c.wanted) // fails only on a closed connection
		c.Failed = nil
	}
}

// mustEnd reports whether the connection must be closed after the response that starts now, because
// the body was not read completely or because of a shutdown.
func (c *conn) mustEnd() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state == receiving || c.state == reading || c.server.closing.Load()
}

// bodyRead records that the whole body was read. It releases the buffer if
// that is empty, because the response may take long.
func (c *conn) bodyRead() {
	c.mu.Lock()
	if c.state == receiving {
		c.state = answering
		c.watchLater()
	}
	c.mu.Unlock()
	if c.In.Buffered() == 0 {
		c.Release()
	}
}
