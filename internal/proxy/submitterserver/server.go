// Package submitterserver serves what nearly all submitters send, plain HTTP/1.1
// requests, with less memory and less work than net/http's server: a
// job that waits for its answer holds no buffer of its connection. It is a
// listener before that server, and hands on to it every connection on which
// anything else comes: HTTP/2, HTTP/1.0, bodies in chunks, Expect, Upgrade, a
// malformed head. So a request is parsed, and refused, by net/http in both cases.
package submitterserver

import (
	"context"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"example.org/pilotfish/internal/proxy/lazyconn"
)

// Config says how connections are served. All fields but ErrorLog are required.
type Config struct {
	Handler http.Handler
	// Base is the context of all requests. Its end cuts them.
	Base context.Context
	// IdleTimeout bounds the wait for a request: also for the first one, for a submitter may
	// keep a connection that it opened for a job which found another.
	IdleTimeout time.Duration
	// ErrorLog is told of panics; nil is the standard logger.
	ErrorLog *log.Logger
}

// Server serves plain connections.
type Server struct {
	cfg     Config
	buffers *lazyconn.Buffers // hold a head and a body of 4 KB
	closing atomic.Bool
	accepts atomic.Bool // a connection may come that is not in conns yet

	mu    sync.Mutex
	conns map[*conn]struct{}
}

// New returns a server.
func New(cfg Config) *Server {
	if cfg.ErrorLog == nil {
		cfg.ErrorLog = log.Default()
	}
	return &Server{cfg: cfg, buffers: lazyconn.NewBuffers(maxHead), conns: map[*conn]struct{}{}}
}

// Listen serves the connections that l accepts. The listener that it returns accepts
// those that are not plain, as if nothing had been read from them.
func (s *Server) Listen(l net.Listener) net.Listener {
	f := &front{Listener: l, server: s, handed: make(chan net.Conn), errs: make(chan error), closed: make(chan struct{})}
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
}

// accept accepts connections until the listener is closed. Other errors are for
// the caller of Accept, who decides how long to wait before the next try.
func (f *front) accept() {
	defer f.server.accepts.Store(false)
	for {
		nc, err := f.Listener.Accept()
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
			f.hand(nc)
			continue
		}
		go f.server.newConn(lazy, tcp, f.hand).serve()
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

// Close stops accepting.
func (f *front) Close() error {
	f.once.Do(func() { close(f.closed) })
	return f.Listener.Close()
}

// all returns the connections.
func (s *Server) all() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.conns))
}

// Shutdown closes the connections that wait for a request, and waits until the
// others have ended theirs and the listener is closed, or until ctx ends.
func (s *Server) Shutdown(ctx context.Context) error {
	s.closing.Store(true)
	pause := time.Millisecond
	for {
		accepts, all := s.accepts.Load(), s.all() // in this order: who was accepted last is among all
		for _, c := range all {
			c.interruptIdle()
		}
		if !accepts && len(all) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
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
