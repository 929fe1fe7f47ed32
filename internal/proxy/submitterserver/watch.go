package submitterserver

import "time"

// watchAfter is how long a job runs before its submitter is watched, which may also be
// twice as long: most jobs of a busy sidecar never are.
const watchAfter = 20 * time.Millisecond

// begin notes that a request is served. If it lasts, its submitter is watched, but
// not while some of the body is to come: reading that tells of its end.
func (c *conn) begin(unread bool) {
	c.response.begin()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle, c.serving, c.unread, c.wanted = false, true, unread, time.Time{}
	c.served++
	if !unread {
		c.watchLater()
	}
}

// watchLater sets the timer. When a running timer fires for an older request, it restarts.
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

// tick watches the submitter of a request that lasts. A request that ends before
// leaves the timer alone: stopping and setting it would cost more.
func (c *conn) tick() {
	c.mu.Lock()
	c.ticking = false
	switch {
	case !c.serving || c.unread:
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

// end ends the watch.
func (c *conn) end() {
	c.mu.Lock()
	watch := c.watch
	c.watch, c.serving = nil, false
	c.mu.Unlock()
	if watch != nil {
		_ = c.SetReadDeadline(time.Unix(1, 0)) // fails only on a closed connection
		<-watch
		_ = c.SetReadDeadline(time.Time{})
	}
}

// arm gives the connection a read deadline, if it has another. c.mu must be held.
func (c *conn) arm(at time.Time) {
	if !c.armed.Equal(at) {
		_ = c.SetReadDeadline(at) // fails only on a closed connection
		c.armed = at
	}
}

// reads notes that a read of the body begins that may wait, or that it has ended.
// It goes by the handler's deadline, whatever came of an earlier one.
func (c *conn) reads(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading = on
	c.arm(c.wanted)
	c.Failed = nil
}

// mustEnd reports whether the connection ends after the answer that begins now:
// the rest of a body that was not read by then is not read for the next request.
func (c *conn) mustEnd() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unread || c.server.closing.Load()
}

// bodyRead notes that all of the body was read. The buffer is given back if
// nothing follows: the answer may take long.
func (c *conn) bodyRead() {
	c.mu.Lock()
	c.unread = false
	if c.serving {
		c.watchLater()
	}
	c.mu.Unlock()
	if c.In.Buffered() == 0 {
		c.Release()
	}
}
