package submitterserver

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"example.org/pilotfish/internal/proxy/http1"
	"example.org/pilotfish/internal/proxy/lazyconn"
	"example.org/pilotfish/internal/record"
)

// newTime is the age up to which a connection without a request is not closed in a shutdown,
// because its first request may be on its way.
const newTime = 5 * time.Second

// conn is the connection of one submitter. Its goroutine serves one request
// after the other.
type conn struct {
	*lazyconn.Conn
	tcp    tcpConn // the connection below lazyconn
	server *Server
	hand   func(net.Conn)
	remote string
	ctx    context.Context // of all requests; it ends when the submitter disconnects
	cancel context.CancelFunc

	response response // to the current request
	posted   bool     // the last request was a POST

	mu      sync.Mutex
	state   state
	since   time.Time // when it was accepted, or the last head started
	served  uint64    // number of requests, including the current one
	seen    uint64    // value of served when the timer was set
	wanted  time.Time // the handler's read deadline for the body
	ticking bool      // the timer runs, possibly for an earlier request
	timer   *time.Timer
	watch   chan struct{} // closed when the watch has ended; nil without a watch
}

// state is the state of a connection. The package comment describes the states.
type state uint8

const (
	waiting state = iota
	starting
	receiving
	reading
	answering
	finishing
	lingering
	handed
)

func (c *conn) set(to state) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = to
}

func (s *Server) newConn(lazy *lazyconn.Conn, tcp tcpConn, hand func(net.Conn)) *conn {
	c := &conn{Conn: lazy, tcp: tcp, server: s, hand: hand, remote: tcp.RemoteAddr().String(), since: time.Now()}
	c.ctx, c.cancel = context.WithCancel(context.WithValue(s.cfg.Base, http.LocalAddrContextKey, tcp.LocalAddr()))
	if s.cfg.Context != nil {
		c.ctx = s.cfg.Context(c.ctx)
	}
	c.response.conn = c
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[c] = struct{}{}
	return c
}

// serve serves the connection until it ends or is handed over. A panic ends this connection only.
func (c *conn) serve() {
	defer func() {
		if err := recover(); err != nil {
			c.logPanic(err)
			c.forget()
			_ = c.tcp.Close()
		}
	}()
	for c.await() {
		r, over := c.next()
		if over {
			return
		}
		if r == nil {
			continue
		}
		c.begin(r.ContentLength != 0)
		done := c.call(r)
		if !c.finish(r, done) {
			break
		}
	}
	c.forget()
	_ = c.tcp.Close()
}

func (c *conn) forget() {
	c.cancel()
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	delete(c.server.conns, c)
}

// await waits for the first bytes of a request. It returns false if the
// connection has ended or its idle timeout has passed.
func (c *conn) await() bool {
	until := time.Now().Add(c.server.cfg.IdleTimeout)
	for c.becomeIdle(until) {
		err := c.awaitRequest()
		if err == nil {
			return true
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return false
		}
		c.Failed = nil
		if !time.Now().Before(until) { // otherwise it was a shutdown
			break
		}
	}
	return c.takeLastRequest()
}

// takeLastRequest reports whether a request has arrived just before the connection is closed. It
// would be lost without a response, and its submitter could not know whether it was processed.
func (c *conn) takeLastRequest() bool {
	_ = c.SetReadDeadline(time.Time{}) // fails only on a closed connection
	if c.Readable() && c.In != nil && c.In.Buffered() >= minRequestStart {
		return true
	}
	_ = c.tcp.CloseWrite() // now, because a request that arrives later is lost; fails only on a closed connection
	return false
}

// pipelined reports whether bytes have arrived after the served request.
func (c *conn) pipelined() bool {
	_ = c.SetReadDeadline(time.Time{}) // fails only on a closed connection
	c.Failed = nil
	return c.Readable() && c.Failed == nil
}

// minRequestStart is the number of bytes that count as the start of a request. On a connection that has
// served a request, fewer bytes before the end are ignored, as in net/http.
const minRequestStart = 4

// awaitRequest waits for the first bytes of a request.
func (c *conn) awaitRequest() error {
	if c.In == nil || c.In.Buffered() == 0 { // the submitter does not pipeline
		c.Release()
		if err := c.Await(); err != nil || c.served == 0 {
			return err
		}
	}
	_, err := c.In.Peek(minRequestStart)
	return err
}

// becomeIdle enters the state waiting, which lasts at most until until.
func (c *conn) becomeIdle(until time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server.closing.Load() && (c.served > 0 || time.Since(c.since) > newTime) {
		return false
	}
	_ = c.SetReadDeadline(until) // fails only on a closed connection
	c.state = waiting
	return true
}

// interruptIdle ends the wait for a request in a shutdown. New connections, and those on which a request has
// started, continue to wait for newTime. It returns the state.
func (c *conn) interruptIdle() state {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == waiting || c.state == starting && time.Since(c.since) > newTime {
		_ = c.SetReadDeadline(time.Unix(1, 0)) // fails only on a closed connection
	}
	return c.state
}

// prepare sets the body of a request and prepares the response. head is the request's head.
func (c *conn) prepare(r *http.Request, head *http1.Head) {
	c.posted = r.Method == http.MethodPost
	r.RemoteAddr = c.remote
	w := &c.response
	w.received, w.memory = head.Fields, head.Memory
	w.head, w.old, w.close = r.Method == http.MethodHead, r.ProtoMinor == 0, r.Close || has(r.Header.Get("Connection"), "close")
	b := &body{conn: c, left: r.ContentLength, expects: expects(r) && r.ProtoMinor > 0}
	switch {
	case r.ContentLength < 0:
		b.left, b.chunks = 1, &http1.Chunks{In: c.In, MaxTrailer: maxHead}
	case r.ContentLength == 0:
		r.Body = http.NoBody
		c.bodyRead()
		return
	}
	r.Body = b
}

// call runs the handler and reports whether it returned without a panic.
func (c *conn) call(r *http.Request) (done bool) {
	defer func() {
		if done {
			return
		}
		if err := recover(); err != http.ErrAbortHandler { //nolint:errorlint // handlers panic with this value
			c.logPanic(err)
		}
	}()
	if r.Header.Get("Expect") != "" && !expects(r) {
		refusal(&c.response, record.ErrExpectation)
	} else {
		c.server.cfg.Handler.ServeHTTP(&c.response, r)
	}
	return true
}

func (c *conn) logPanic(err any) {
	c.server.cfg.ErrorLog.Printf("http: panic serving %s: %v\n%s", c.remote, err, debug.Stack())
}

// finish ends a request after its handler. done is false after a panic. It reports whether
// the connection can serve another request.
func (c *conn) finish(r *http.Request, done bool) bool {
	c.end()
	unread := false
	if b, ok := r.Body.(*body); ok {
		unread = b.unread()
	}
	if !done || c.response.finish(unread) != nil {
		return false
	}
	c.response.forget()
	if unread || c.response.close && c.pipelined() {
		c.set(lingering)
		_ = c.SetReadDeadline(time.Unix(1, 0)) // ends a read of the body, which would replace the deadlines of linger
		linger(c.tcp)
	}
	return !c.response.close
}
