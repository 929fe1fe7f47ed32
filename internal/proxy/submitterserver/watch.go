package submitterserver

import "time"

// watchAfter is the age of a job from which a disconnect of its submitter is detected (up to twice
// that). Most jobs are shorter, so they save the cost.
const watchAfter = 20 * time.Millisecond

// begin enters the state in which a request is served.
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

// tick watches the submitter of a request that lasts. A shorter request leaves the timer
// running: stopping and setting it would cost more.
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
	c.arm(time.Time{})
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
		_ = c.SetReadDeadline(time.Time{})
	}
}

// arm gives the connection a read deadline, unless it has that one already. c.mu must be held.
func (c *conn) arm(at time.Time) {
	if !c.armed.Equal(at) {
		_ = c.SetReadDeadline(at) // fails only on a closed connection
		c.armed = at
	}
}

// beginRead begins a read of the body that can wait. The handler's deadline bounds it, even
// if an earlier one has passed.
func (c *conn) beginRead() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == receiving {
		c.state = reading
		c.arm(c.wanted)
		c.Failed = nil
	}
}

// endRead ends a read of the body. It may come after the handler has returned.
func (c *conn) endRead() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == reading {
		c.state = receiving
		c.arm(c.wanted)
		c.Failed = nil
	}
}

// mustEnd reports whether the connection ends after the response that begins now, because
// the rest of the body will not be read, or because of a shutdown.
func (c *conn) mustEnd() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state == receiving || c.state == reading || c.server.closing.Load()
}

// bodyRead notes that all of the body was read. The buffer is given back if
// nothing follows, because the response may take long.
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
