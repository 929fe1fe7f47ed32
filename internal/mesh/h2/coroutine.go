package h2

import "iter"

// coroutine runs the handlers of streams, one after another.
type coroutine struct {
	stream *Stream // nil after its handler has returned
	next   func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
}

func newCoroutine(handler func(*Stream)) *coroutine {
	c := &coroutine{}
	c.next, c.stop = iter.Pull(func(yield func(struct{}) bool) {
		c.yield = yield
		for more := true; more; more = yield(struct{}{}) {
			handler(c.stream)
			c.stream = nil
		}
	})
	return c
}

// resume runs the stream's handler until it waits for the client. mu is held before and after, but not
// while it runs. r is the calling goroutine, or nil if that is not the connection's reader.
func (c *Conn) resume(r *reader, s *Stream) {
	s.again = true
	if s.coroutine == nil || s.running {
		return // the handler has returned, or its goroutine sees again
	}
	s.running, s.reader = true, r
	for s.again && s.coroutine != nil {
		s.again = false
		c.mu.Unlock()
		s.coroutine.next()
		c.mu.Lock()
		if s.coroutine.stream == nil {
			c.remove(s)
		}
	}
	s.running = false
	if !s.reader.reads() {
		c.flush()
	}
}

// remove removes a stream whose handler has returned.
func (c *Conn) remove(s *Stream) {
	if s.received != nil {
		c.consumed(nil, int64(s.received.Len()))
		c.free(s)
	}
	if len(c.idle) < maxIdle && !c.closed {
		c.idle = append(c.idle, s.coroutine)
	} else {
		s.coroutine.stop()
	}
	s.coroutine = nil
	delete(c.streams, s.id)
	c.closeIfLeft()
}

// unblock runs the streams that wait until they can send.
func (c *Conn) unblock(r *reader) {
	for _, s := range c.streams {
		if s.blocked {
			c.writers = append(c.writers, s)
		}
	}
	c.runWriters(r)
}

// runWriters runs the streams that can send again. If one of them calls Detach, the next reader runs the others.
func (c *Conn) runWriters(r *reader) {
	for n := len(c.writers); n > 0; n = len(c.writers) {
		s := c.writers[n-1]
		c.writers = c.writers[:n-1]
		c.resume(r, s)
	}
	c.writers = nil
}
