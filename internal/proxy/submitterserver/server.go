// Package submitterserver serves what nearly all submitters send, HTTP/1.1 and 1.0
// requests, with less memory and less work than net/http's server: a
// job that waits for its response holds no buffer of its connection. It is a
// listener in front of that server, and hands every connection over to it on which
// HTTP/2, a malformed request or an unusually long one arrives.
//
// A connection is in one of these states:
//
//	waiting    It waits for a request, until its idle timeout at most. It has no buffer,
//	           unless bytes of the next request have arrived. A shutdown ends the wait.
//	           A plain request leads to receiving or answering, any other to handed.
//	starting   Some of a request's head has arrived. The rest must within 10 s. It leads on like waiting.
//	receiving  A handler runs, and some of the request's body is still to come. Nobody
//	           watches the submitter: reading the body finds its end.
//	reading    As receiving, and a read of the body waits. The read deadline is the
//	           handler's.
//	answering  A handler runs, and all of the body was read. After 20 ms the submitter is
//	           watched, which finds that it left. Only the watch uses the connection's
//	           read side.
//	finishing  The handler has returned. Its response is sent. Whole requests lead to
//	           waiting, the others to lingering or the end.
//	lingering  The response is sent, and the submitter may still be sending its body.
//	           What arrives is dropped, because a close would reset the connection,
//	           and the submitter would lose the response.
//	handed     net/http's server has the connection. If it reads a valid head of HTTP/1, a new
//	           conn takes the connection back with that request.
package submitterserver

import (
	"context"
	"errors"
	"log"
	"maps"
	"math"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/proxy/lazyconn"
)

// Config is the configuration of a Server. Context, Budget and ErrorLog are optional.
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
	// ErrorLog receives panics; nil means the standard logger.
	ErrorLog *log.Logger
}

// Server serves plain HTTP/1 connections.
type Server struct {
	cfg     Config
	buffers *lazyconn.Buffers // hold a head and a body of 4 KB
	closing atomic.Bool
	accepts atomic.Bool // a connection may come that is not in conns yet

	mu     sync.Mutex
	conns  map[*conn]struct{}
	handed map[*handedConn]time.Time // since when net/http has a connection without having begun a request
	linger map[net.Conn]bool         // net/http's connections that are closed after a while
	stops  []func() error            // close the listeners
}

// New returns a server.
func New(cfg Config) *Server {
	if cfg.ErrorLog == nil {
		cfg.ErrorLog = log.Default()
	}
	if cfg.Budget == nil {
		cfg.Budget = intake.NewBudget(math.MaxInt64/2, 0)
	}
	return &Server{cfg: cfg, buffers: lazyconn.NewBuffers(maxHead), conns: map[*conn]struct{}{}, handed: map[*handedConn]time.Time{}, linger: map[net.Conn]bool{}}
}

// taken notes that a connection that was handed on serves a request, or has ended.
func (s *Server) taken(c *handedConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.handed, c)
}

// lingers notes whether a connection will be closed after a while.
func (s *Server) lingers(nc net.Conn, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.linger, nc); on {
		s.linger[nc] = true
	}
}

// lingering returns the connections that will be closed after a while.
func (s *Server) lingering() []net.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.linger))
}

// handingOn reports whether the server behind may not have begun a request yet that was handed on. One whose head is
// still not there after a while is not waited for.
func (s *Server) handingOn() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, since := range s.handed {
		if time.Since(since) < newTime {
			return true
		}
	}
	return false
}

// Listen serves the connections that l accepts. The listener that it returns accepts
// those that are not plain, as if nothing had been read from them.
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

// front is a listener that accepts only the connections that are not plain.
type front struct {
	net.Listener
	server *Server
	handed chan net.Conn
	errs   chan error
	closed chan struct{}
	once   sync.Once
	stop   func() error // accepts no more; Accept still returns those that are handed on
}

// accept accepts connections until the listener is closed. Other errors are for
// the caller of Accept, who decides how long to wait before the next try.
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
			f.hand(f.server.newHanded(nc, nil, f.hand))
			continue
		}
		go f.server.newConn(lazy, tcp, f.hand).serve(nil)
	}
}

// hand passes a connection on.
func (f *front) hand(nc net.Conn) {
	select {
	case f.handed <- nc:
	case <-f.closed:
		_ = nc.Close()
	}
}

// Accept returns a connection that was handed on.
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

// all returns all open connections.
func (s *Server) all() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.conns))
}

// Shutdown closes the listeners and the connections that wait for a request, and waits until the
// others have ended theirs, or until ctx ends. next shuts the server behind this one down. That one
// still takes what is handed on until it has begun all: a request that came on a new one would be lost.
func (s *Server) Shutdown(ctx context.Context, next func(context.Context) error) error {
	s.closing.Store(true)
	s.mu.Lock()
	for _, stop := range s.stops {
		_ = stop() // next tells of an error
	}
	s.mu.Unlock()
	ended := make(chan error, 1)
	last := sync.OnceFunc(func() { go func() { ended <- next(ctx) }() })
	pause := time.Millisecond
	for {
		accepts, all := s.accepts.Load(), s.all() // in this order: who was accepted last is among all
		handsOn := accepts
		for _, c := range all {
			handsOn = c.interruptIdle() || handsOn
		}
		handsOn = handsOn || s.handingOn() // who was handed on meanwhile is known there
		if !handsOn {
			last()
		}
		if !handsOn && len(all) == 0 && len(s.lingering()) == 0 {
			return <-ended
		}
		select {
		case <-ctx.Done():
			last()
			return errors.Join(ctx.Err(), <-ended)
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
	for _, nc := range s.lingering() {
		_ = nc.Close()
	}
}
