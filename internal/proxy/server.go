package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"example.org/pilotfish/internal/proxy/lazyconn"
	"example.org/pilotfish/internal/proxy/submitterserver"
	"example.org/pilotfish/internal/proxy/upstreamclient"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/internal/settings"
)

// ServerSettings is the section "submitters" of a configuration file: what all of
// them together may take.
type ServerSettings struct {
	// Connections is how many may be open; further ones wait to be accepted. On the port "mesh.listen" it is the
	// number of open streams; further ones are refused with RESOURCE_EXHAUSTED.
	Connections int `yaml:"connections"`
}

// DefaultServer is the settings of an empty file.
func DefaultServer() ServerSettings { return ServerSettings{Connections: 4096} }

// Check reports what cannot be used.
func (s ServerSettings) Check(f *settings.Faults) {
	f.AtLeast("connections", int64(s.Connections), 1)
}

// ServerConfig bounds what submitters may take.
type ServerConfig struct {
	// IdleTimeout is how long a connection is kept without a job; 0 is 2 min.
	IdleTimeout time.Duration
	// Conns bounds the connections; further ones wait to be accepted. Required.
	Conns int
	// Unframed is set for handlers that leave it to net/http to find out how long what they
	// write is, and of which type. All connections are then net/http's.
	Unframed bool
	// ErrorLog gets what net/http has to say; nil is the standard logger.
	ErrorLog *log.Logger
}

const (
	headTime   = 10 * time.Second // for the head of a request
	idleTime   = 2 * time.Minute
	maxStreams = 250 // jobs at one time on one HTTP/2 connection
)

// Bounds of what a connection holds, in bytes. One of HTTP/2 keeps a buffer for a frame of
// the largest size: 16 KiB is the least that RFC 9113 allows, and what most submitters
// send anyway. What has come of bodies and was not read yet, because they are beyond the
// budget and wait for an upstream, is held beside the budget.
const (
	maxHead     = 32 << 10 // of a request: its line and its headers; a longer one is refused with 431
	maxFrame    = 16 << 10
	streamAhead = 64 << 10
	connAhead   = 256 << 10
)

// Server is an http.Server with every bound set, behind one that serves plain
// connections. It speaks HTTP/1.1 and 1.0, and HTTP/2 without TLS to those who
// start with it. A handler says how long what it writes is, or that it comes in
// chunks, and of which type; only with Unframed it need not.
type Server struct {
	http  *http.Server
	plain *submitterserver.Server // serves most connections; nil with Unframed
	cut   context.CancelCauseFunc
	*lazyconn.Limit
}

// NewServer returns a server of h.
func NewServer(h http.Handler, cfg ServerConfig) (*Server, error) {
	if cfg.Conns <= 0 {
		return nil, errors.New("proxy: Conns is required")
	}
	cfg.IdleTimeout = cmp.Or(cfg.IdleTimeout, idleTime)
	base, cut := context.WithCancelCause(context.Background())
	s := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headTime,
		IdleTimeout:       cfg.IdleTimeout,
		MaxHeaderBytes:    maxHead,
		ErrorLog:          cfg.ErrorLog,
		BaseContext:       func(net.Listener) context.Context { return base },
		Protocols:         new(http.Protocols),

		DisableGeneralOptionsHandler: true, // an upstream answers "OPTIONS *", too
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams,
			MaxReadFrameSize:     maxFrame,

			MaxReceiveBufferPerStream:     streamAhead,
			MaxReceiveBufferPerConnection: connAhead,
			WriteByteTimeout:              writeIdle,
			// There is no SendPingTimeout: many submitters answer PING only while they read.
			// TCP finds a dead peer; see lazyconn.KeepAlive.
		},
	}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	all := &Server{http: s, cut: cut, Limit: lazyconn.NewLimit(cfg.Conns)}
	if cfg.Unframed {
		return all, nil
	}
	all.plain = submitterserver.New(submitterserver.Config{
		Handler: h, Base: base, Context: upstreamclient.WithHook, IdleTimeout: cfg.IdleTimeout, ErrorLog: cfg.ErrorLog,
	})
	s.Handler, s.ConnContext = all.plain.Behind(h), all.plain.ConnContext
	return all, nil
}

// Serve accepts from l until Shutdown, and then returns nil.
func (s *Server) Serve(l net.Listener) error {
	limited := s.Over(l)
	if s.plain != nil {
		limited = s.plain.Listen(limited)
	}
	err := s.http.Serve(limited)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serving %s: %w", l.Addr(), err)
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
	return s.plain.Shutdown(ctx, s.http.Shutdown)
}
