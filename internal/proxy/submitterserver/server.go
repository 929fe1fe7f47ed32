// Package submitterserver serves HTTP/1.1 and 1.0 requests with less memory and less CPU
// time than net/http's server: a job that waits for its response holds no buffer of its
// connection. It is a listener in front of net/http's server, and hands over connections
// with HTTP/2.
//
// A connection is in one of these states:
//
//	waiting    It waits for a request, at most for its idle timeout. It has no buffer,
//	           unless bytes of the next request have arrived. A shutdown ends the wait.
//	           A request leads to receiving or answering, HTTP/2 to handed, an invalid
//	           request to lingering.
//	starting   A part of a request's head has arrived. The rest must arrive within 10 s.
//	           The same states follow as after waiting.
//	receiving  A handler runs and has not read the whole body. Reads of the body detect
//	           that the submitter disconnects.
//	reading    As receiving, and a read of the body blocks, until the handler's read
//	           deadline.
//	answering  A handler runs and has read the whole body. After 20 ms a watch detects
//	           that the submitter disconnects. Only the watch uses the connection's
//	           read side.
//	finishing  The handler has returned, and the rest of the response is sent. waiting
//	           follows if the whole body was read, otherwise lingering or the end.
//	lingering  The response is sent, and the submitter may still be sending its body.
//	           Received bytes are dropped. Closing the connection would reset it, and
//	           the submitter would lose the response. A shutdown waits for it only briefly.
//	handed     net/http's server serves the connection, with HTTP/2.
package submitterserver

import (
	"context"
	"errors"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/proxy/lazyconn"
)

// Config is the configuration of a Server. All fields except Context are required.
type Config struct {
	Handler http.Handler
	// Base is the parent context of all requests. Its end aborts them.
	Base context.Context
	// IdleTimeout is the idle timeout of a connection. It also applies before the first request: a client can
	// open a connection for a job that then uses another one.
	IdleTimeout time.Duration
	// Context returns the context of a connection's requests, within the one given.
	Context func(context.Context) context.Context
	// Budget counts the memory of long heads that are not complete.
	Budget *intake.Budget
	// ErrorLog receives panics.
	ErrorLog *log.Logger
}

// Server serves HTTP/1 connections.
type Server struct {
	cfg     Config
	buffers *lazyconn.Buffers // for a head and a body of 4 KB
	closing atomic.Bool
	accepts atomic.Bool // there may be an accepted connection that is not in conns yet

	mu     sync.Mutex
	conns  map[*conn]struct{}
	handed map[*handedConn]time.Time // connections handed to net/http that it has not begun to serve, and when they were handed over
	stops  []func() error            // close the listeners
}

// New returns a server.
func New(cfg Config) *Server {
	return &Server{cfg: cfg, buffers: lazyconn.NewBuffers(maxHead), conns: map[*conn]struct{}{}, handed: map[*handedConn]time.Time{}}
}

// handOverEnded records that net/http serves a handed connection, or that the connection has ended.
func (s *Server) handOverEnded(c *handedConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.handed, c)
}

// isHandingOver reports whether there are connections that net/http has not begun to serve, except those that were handed
// over more than newTime ago.
func (s *Server) isHandingOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, since := range s.handed {
		if time.Since(since) < newTime {
			return true
		}
	}
	return false
}

// Listen serves the connections that l accepts. The returned listener accepts the
// handed connections, as if nothing had been read from them.
func (s *Server) Listen(l net.Listener) net.Listener {
	f := &front{Listener: l, server: s, handed: make(chan net.Conn), errs: make(chan error), closed: make(chan struct{})}
	f.stop = sync.OnceValue(l.Close)
	s.mu.Lock()
	s.stops = append(s.stops, f.stop)
	s.mu.Unlock()
	s.accepts.Store(true)
	go f.accept()
	return f
}

// front is a listener that accepts only handed connections.
type front struct {
	net.Listener
	server *Server
	handed chan net.Conn
	errs   chan error
	closed chan struct{}
	once   sync.Once
	stop   func() error // closes the listener below; Accept still returns handed connections
}

// accept accepts connections until the listener is closed. Accept returns its errors to
// net/http's server, which waits before the next try.
func (f *front) accept() {
	defer f.server.accepts.Store(false)
	for {
		nc, err := f.Listener.Accept()
		if err != nil && f.server.closing.Load() {
			return
		}
		if err != nil {
			select {
			case f.errs <- err:
				continue
			case <-f.closed:
				return
			}
		}
		tcp, ok := nc.(tcpConn)
		lazy := lazyconn.New(nc, f.server.buffers)
		if !ok || !lazy.Lazy() {
			f.hand(f.server.newHanded(nc, nil))
			continue
		}
		go f.server.newConn(lazy, tcp, f.hand).serve()
	}
}

// hand passes a connection to Accept.
func (f *front) hand(nc net.Conn) {
	select {
	case f.handed <- nc:
	case <-f.closed:
		_ = nc.Close()
	}
}

// Accept returns a handed connection.
func (f *front) Accept() (net.Conn, error) {
	select {
	case nc := <-f.handed:
		return nc, nil
	case err := <-f.errs:
		return nil, err
	case <-f.closed:
		return nil, net.ErrClosed
	}
}

// Close stops accepting connections.
func (f *front) Close() error {
	f.once.Do(func() { close(f.closed) })
	return f.stop()
}

func (s *Server) all() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.conns))
}

// lingerAtEnd is how long a shutdown waits for connections that linger: their responses are sent.
const lingerAtEnd = time.Second

// Shutdown closes the listeners and the connections that wait for a request, and waits until the
// other connections have finished their requests or ctx ends. next shuts down net/http's server. It is called when
// that server has begun to serve all handed connections, because it drops connections without a request.
func (s *Server) Shutdown(ctx context.Context, next func(context.Context) error) error {
	s.closing.Store(true)
	s.mu.Lock()
	for _, stop := range s.stops {
		_ = stop() // next returns the error
	}
	s.mu.Unlock()
	ended := make(chan error, 1)
	last := sync.OnceFunc(func() { go func() { ended <- next(ctx) }() })
	began := time.Now()
	pause, until := time.Millisecond, began.Add(lingerAtEnd)
	for {
		accepts, all := s.accepts.Load(), s.all() // in this order, so that all contains the last accepted connection
		handsOn, open, lingers := accepts, false, false
		for _, c := range all {
			switch c.interruptIdle() {
			case waiting, starting, finishing, handed:
				handsOn = true // it can be handed to net/http
			case lingering:
				lingers = true
			default:
				open = true
			}
		}
		handsOn = handsOn || s.isHandingOver() // includes those handed over since s.all
		if !handsOn {
			last()
		}
		switch open = open || handsOn; {
		case open:
			until = time.Now().Add(lingerAtEnd)
		case !lingers || !time.Now().Before(until):
			return <-ended
		}
		done := ctx.Done()
		if accepts && time.Since(began) < lingerAtEnd {
			done = nil // a goroutine has not noticed yet that its listener is closed, so no connection need be open
		}
		select {
		case <-done:
			last()
			err := <-ended
			if open {
				err = errors.Join(ctx.Err(), err)
			}
			return err
		case <-time.After(pause):
		}
		pause = min(2*pause, 100*time.Millisecond)
	}
}

// Close closes all connections.
func (s *Server) Close() {
	s.closing.Store(true)
	for _, c := range s.all() {
		_ = c.tcp.Close()
	}
}
