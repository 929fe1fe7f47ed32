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

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/proxy/lazyconn"
	"example.org/pilotfish/internal/proxy/submitterserver"
	"example.org/pilotfish/internal/proxy/upstreamclient"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/internal/settings"
)

// ServerSettings is the section "submitters" of a configuration file: limits for all
// submitters together.
type ServerSettings struct {
	// Connections is the maximum number of open connections; further connections wait to be accepted. On the port
	// "mesh.listen" it is the maximum number of open streams; further streams are refused with RESOURCE_EXHAUSTED.
	Connections int `yaml:"connections"`
}

// DefaultServer returns the settings of an empty file.
func DefaultServer() ServerSettings { return ServerSettings{Connections: 4096} }

// Check adds invalid values to f.
func (s ServerSettings) Check(f *settings.Faults) {
	f.AtLeast("connections", int64(s.Connections), 1)
}

// ServerConfig is the configuration of a Server.
type ServerConfig struct {
	// IdleTimeout is the idle timeout of a connection; 0 means 2 min.
	IdleTimeout time.Duration
	// Conns is the maximum number of connections; further connections wait to be accepted. Required.
	Conns int
	// Unframed is set for handlers that do not set the length or the type of their responses, but
	// rely on net/http for that. net/http then serves all connections.
	Unframed bool
	// Budget counts the memory of long heads that are not complete. Required unless Unframed.
	Budget *intake.Budget
	// ErrorLog receives the log messages of net/http. Required.
	ErrorLog *log.Logger
}

const (
	headTime   = 10 * time.Second // timeout for a request header
	idleTime   = 2 * time.Minute  // default idle timeout
	maxStreams = 250              // concurrent streams on one HTTP/2 connection
)

// Bounds of the memory of a connection, in bytes. The HTTP/2 receive window of a stream (streamAhead) holds data that was
// received but not read, because the body exceeds the budget and the job waits for an upstream. The job reserves it in the
// budget. That of the connection (connAhead) is enough for all streams, so none blocks the others.
const (
	maxHead     = 32 << 10 // request line and headers; a longer header is refused with 431
	maxFrame    = 16 << 10 // HTTP/2 frame; the minimum that RFC 9113 allows, and what most clients send
	streamAhead = 64 << 10
	connAhead   = (maxStreams + 1) * streamAhead
)

// Server is an http.Server with every limit set, behind a leaner server for
// HTTP/1 connections. It supports HTTP/1.0, HTTP/1.1, and HTTP/2 without TLS with
// prior knowledge. Handlers must set Content-Length or Transfer-Encoding, and
// Content-Type, unless Unframed is set.
type Server struct {
	http  *http.Server
	plain *submitterserver.Server // serves HTTP/1; nil with Unframed
	abort context.CancelCauseFunc // aborts all jobs
	*lazyconn.Limit
}

// NewServer returns a server of h.
func NewServer(h http.Handler, cfg ServerConfig) *Server {
	cfg.IdleTimeout = cmp.Or(cfg.IdleTimeout, idleTime)
	base, abort := context.WithCancelCause(context.Background())
	s := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headTime,
		IdleTimeout:       cfg.IdleTimeout,
		MaxHeaderBytes:    maxHead,
		ErrorLog:          cfg.ErrorLog,
		BaseContext:       func(net.Listener) context.Context { return base },
		Protocols:         new(http.Protocols),

		DisableGeneralOptionsHandler: true, // "OPTIONS *" is forwarded like any request
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams,
			MaxReadFrameSize:     maxFrame,

			MaxReceiveBufferPerStream:     streamAhead,
			MaxReceiveBufferPerConnection: connAhead,
			WriteByteTimeout:              writeIdle,
			// No SendPingTimeout: many clients answer PING only while they read.
			// TCP keep-alive detects a dead peer; see lazyconn.KeepAlive.
		},
	}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	all := &Server{http: s, abort: abort, Limit: lazyconn.NewLimit(cfg.Conns)}
	if cfg.Unframed {
		return all
	}
	all.plain = submitterserver.New(submitterserver.Config{
		Handler: h, Base: base, Context: upstreamclient.WithHook, IdleTimeout: cfg.IdleTimeout, Budget: cfg.Budget, ErrorLog: cfg.ErrorLog,
	})
	s.Handler, s.ConnContext = all.plain.Wrap(h), all.plain.ConnContext
	return all
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

// closeTime is the time for aborted jobs to write their logs and metrics.
const closeTime = time.Second

// Shutdown stops accepting and waits for the open jobs until ctx ends. The jobs that are left
// are then aborted in a way that their submitters can detect, and ctx's error is returned.
func (s *Server) Shutdown(ctx context.Context) error {
	defer s.abort(record.ErrShutdown)
	err := s.drain(ctx)
	if err == nil {
		return nil
	}
	s.abort(record.ErrShutdown)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	_ = s.drain(closing) // an error means that the time is over: jobs are then aborted
	if s.plain != nil {
		s.plain.Close()
	}
	return errors.Join(fmt.Errorf("jobs were aborted: %w", err), s.http.Close())
}

// drain waits for the open jobs until ctx ends.
func (s *Server) drain(ctx context.Context) error {
	if s.plain == nil {
		return s.http.Shutdown(ctx)
	}
	return s.plain.Shutdown(ctx, s.http.Shutdown)
}
