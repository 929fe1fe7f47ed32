package proxy

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"example.org/pilotfish/internal/proxy/submitterserver"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/internal/settings"
)

// ServerSettings is the section "submitters" of a configuration file: what all of
// them together may take.
type ServerSettings struct {
	// Connections is how many may be open; further ones wait to be accepted.
	Connections int `yaml:"connections"`
	// MaxHead is the largest head of a request: its request line and its headers. A
	// larger one is refused with 431.
	MaxHead settings.Size `yaml:"max_head"`
	// Heads bounds the memory of all heads together that have begun to arrive and
	// have not ended, beyond 4 KiB of each. One that finds no room is refused with 503.
	Heads settings.Size `yaml:"heads"`
}

// DefaultServer is the settings of an empty file.
func DefaultServer() ServerSettings {
	return ServerSettings{Connections: 4096, MaxHead: 32 << 10, Heads: 32 << 20}
}

// Check reports what cannot be used.
func (s ServerSettings) Check(f *settings.Faults) {
	f.AtLeast("connections", int64(s.Connections), 1)
	f.AtLeast("max_head", int64(s.MaxHead), 1<<10)
	f.AtLeast("heads", int64(s.Heads), 0)
}

// ServerConfig bounds what submitters may take.
type ServerConfig struct {
	// HeaderTimeout bounds the time for a request's head; default 10 s.
	HeaderTimeout time.Duration
	// IdleTimeout is how long a connection is kept without a job; default 2 min.
	IdleTimeout time.Duration
	// MaxHeader bounds a request's head, in bytes, and Conns the connections; further
	// ones wait to be accepted. The defaults are those of ServerSettings.
	MaxHeader, Conns int
	// Arriving bounds the heads that arrive; nil is a bound of the server's own.
	Arriving *Heads
	// CloseIdle closes the connection that has been idle for longest when a further
	// one waits. A request that arrives on it at that moment is lost, so it is not for jobs.
	CloseIdle bool
	// Streams bounds the jobs at one time on one HTTP/2 connection; default 250.
	Streams int
	// WriteIdle bounds how long an HTTP/2 connection may take no byte; default 5 min.
	WriteIdle time.Duration
	// ErrorLog gets what net/http has to say; nil is the standard logger.
	ErrorLog *log.Logger
}

// Bounds of what an HTTP/2 connection holds, in bytes. It keeps a buffer for a frame of
// the largest size: 16 KiB is the least that RFC 9113 allows, and what most submitters
// send anyway. What has come of bodies and was not read yet, because they are beyond the
// budget and wait for an upstream, is held beside the budget.
const (
	maxFrame    = 16 << 10
	streamAhead = 64 << 10
	connAhead   = 256 << 10
)

// Server is an http.Server with every bound set, behind one that serves plain
// connections. It speaks HTTP/1.1 and 1.0, and HTTP/2 without TLS to those who
// start with it. A handler says how long what it writes is, or that it comes in
// chunks, and of which type; only with CloseIdle it need not.
type Server struct {
	http      *http.Server
	plain     *submitterserver.Server // serves most connections; nil with CloseIdle
	conns     int
	arriving  *Heads
	closeIdle bool
	cut       context.CancelCauseFunc
	bounded   atomic.Pointer[bounded] // nil before Serve
}

// NewServer returns a server of h.
func NewServer(h http.Handler, cfg ServerConfig) (*Server, error) {
	def := DefaultServer()
	err := errors.Join(
		number("HeaderTimeout", &cfg.HeaderTimeout, 10*time.Second),
		number("IdleTimeout", &cfg.IdleTimeout, 2*time.Minute),
		number("MaxHeader", &cfg.MaxHeader, int(def.MaxHead)),
		number("Conns", &cfg.Conns, def.Connections),
		number("Streams", &cfg.Streams, 250),
		number("WriteIdle", &cfg.WriteIdle, 5*time.Minute),
	)
	if err != nil {
		return nil, err
	}
	if cfg.Arriving == nil {
		cfg.Arriving = NewHeads(int64(def.Heads))
	}
	base, cut := context.WithCancelCause(context.Background())
	s := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: cfg.HeaderTimeout,
		IdleTimeout:       cfg.IdleTimeout,
		MaxHeaderBytes:    cfg.MaxHeader,
		ErrorLog:          cfg.ErrorLog,
		BaseContext:       func(net.Listener) context.Context { return base },
		Protocols:         new(http.Protocols),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: cfg.Streams,
			MaxReadFrameSize:     maxFrame,

			MaxReceiveBufferPerStream:     streamAhead,
			MaxReceiveBufferPerConnection: connAhead,
			SendPingTimeout:               30 * time.Second,
			WriteByteTimeout:              cfg.WriteIdle,
		},
	}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	all := &Server{http: s, conns: cfg.Conns, arriving: cfg.Arriving, closeIdle: cfg.CloseIdle, cut: cut}
	if cfg.CloseIdle {
		return all, nil // only net/http tells which connections are idle
	}
	all.plain, err = submitterserver.New(submitterserver.Config{
		Handler: h, Base: base, HeaderTimeout: cfg.HeaderTimeout, IdleTimeout: cfg.IdleTimeout, MaxHead: cfg.MaxHeader, ErrorLog: cfg.ErrorLog,
	})
	if err != nil {
		cut(err)
		return nil, err
	}
	return all, nil
}

// Serve accepts from l until Shutdown, and then returns nil.
func (s *Server) Serve(l net.Listener) error {
	bounded := newBounded(l, s.conns)
	s.bounded.Store(bounded)
	rest := net.Listener(bounded)
	if s.closeIdle {
		s.http.ConnState = bounded.note
	} else {
		s.http.ConnState = headState
		rest = headListener{s.plain.Listen(bounded), s.arriving}
	}
	err := s.http.Serve(rest)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serving %s: %w", l.Addr(), err)
}

// Conns is how many connections are open, and how many may be.
func (s *Server) Conns() (open, most int) {
	if b := s.bounded.Load(); b != nil {
		open = b.count()
	}
	return open, s.conns
}

// closeTime is how long jobs that were cut have to end their books.
const closeTime = time.Second

// Shutdown stops accepting and waits for the jobs at hand until ctx ends.
// Those that are left are then cut, visibly to their submitters, and the error is ctx's.
func (s *Server) Shutdown(ctx context.Context) error {
	defer s.cut(record.ErrShutdown)
	err := s.drain(ctx)
	if err == nil {
		return nil
	}
	s.cut(record.ErrShutdown)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	_ = s.drain(closing) // what matters is that they had the time
	if s.plain != nil {
		s.plain.Close()
	}
	return errors.Join(fmt.Errorf("jobs were cut: %w", err), s.http.Close())
}

// drain waits for the jobs at hand until ctx ends.
func (s *Server) drain(ctx context.Context) error {
	if s.plain == nil {
		return s.http.Shutdown(ctx)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.plain.Shutdown(ctx) }()
	return errors.Join(s.http.Shutdown(ctx), <-ended)
}
