package mesh

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/proxy/lazyconn"
)

// ServerConfig is the configuration of a Server.
type ServerConfig struct {
	// Filter returns the filter for a request. done is called at the end of the request. Required.
	Filter func() (f *Filter, done func())
	// Ready returns the reason why no upstream can be chosen, or nil. Required.
	Ready func() error
	// Budget bounds the memory of messages and of streams that have not sent one. Required.
	Budget *intake.Budget
	// Streams is the maximum number of open streams; further streams get RESOURCE_EXHAUSTED. Required.
	Streams int
	// Certificate returns the server's certificate; nil disables TLS.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// ErrorLog receives panics and connection errors; nil means the standard logger.
	ErrorLog *log.Logger
}

// Bounds on connections.
const (
	maxConns       = 256
	maxConnStreams = 250      // concurrent streams on one connection
	maxHeaders     = 64 << 10 // bytes of a stream's own headers
	streamWindow   = 64 << 10 // received but unread bytes of a stream
	connWindow     = 256 << 10
)

// The gRPC methods of the server, and the maximum size of a health check request.
const (
	processMethod = "/envoy.service.ext_proc.v3.ExternalProcessor/Process"
	healthMethod  = "/grpc.health.v1.Health/Check"
	maxCheck      = 1 << 10
)

// Server serves the external processor, and gRPC's health check.
type Server struct {
	cfg   ServerConfig
	http  *http.Server
	times timeouts
	open  chan struct{} // has one token for each open stream
	ended sync.Once     // the wait for the last stream
	*lazyconn.Limit
}

// NewServer returns a server. Serve starts it.
func NewServer(cfg ServerConfig) *Server {
	if cfg.ErrorLog == nil {
		cfg.ErrorLog = log.Default()
	}
	s := &Server{cfg: cfg, times: streamTimes, open: make(chan struct{}, cfg.Streams), Limit: lazyconn.NewLimit(maxConns)}
	s.http = &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 10 * time.Second,
		MaxHeaderBytes:    maxHeaders,
		ErrorLog:          cfg.ErrorLog,
		Protocols:         new(http.Protocols),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          maxConnStreams,
			MaxReceiveBufferPerStream:     streamWindow,
			MaxReceiveBufferPerConnection: connWindow,
			SendPingTimeout:               30 * time.Second,
			PingTimeout:                   20 * time.Second,
			WriteByteTimeout:              time.Minute,
		},
	}
	s.http.Protocols.SetUnencryptedHTTP2(true)
	if cfg.Certificate != nil {
		s.http.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: cfg.Certificate}
		s.http.Protocols.SetHTTP2(true)
	}
	return s
}

var (
	errManyStreams = errors.New("too many streams are open")
	errMethod      = errors.New("unknown method")
	errPanic       = errors.New("pilotfish failed; its log has the details")
)

// ServeHTTP serves one stream.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	st := newStream(w, r, s.cfg.Budget, s.times)
	select {
	case s.open <- struct{}{}:
		defer func() { <-s.open }()
		st.finish(s.serve(r, st))
	default:
		st.finish(failure{codes.ResourceExhausted, errManyStreams})
	}
}

// serve calls the method. A panic ends only this stream.
func (s *Server) serve(r *http.Request, st *stream) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.cfg.ErrorLog.Printf("mesh: panic serving a stream: %v\n%s", p, debug.Stack())
			err = failure{codes.Internal, errPanic}
		}
	}()
	defer st.close()
	if err := st.open(); err != nil {
		return err
	}
	switch r.URL.Path {
	case processMethod:
		f, done := s.cfg.Filter()
		defer done()
		return f.process(r, st)
	case healthMethod:
		return s.check(st)
	}
	return failure{codes.Unimplemented, errMethod}
}

// check serves gRPC's health check. The names of the services are those of the Endpoint Picker Protocol; "" is the process.
func (s *Server) check(st *stream) error {
	b, err := st.receive(maxCheck, 1)
	if err != nil {
		return err
	}
	var service string
	if err := fields(b, func(n protowire.Number, _ uint64, inner []byte) error {
		if n == 1 {
			service = string(inner)
		}
		return nil
	}); err != nil {
		return failure{codes.InvalidArgument, err}
	}
	const serving, notServing = 1, 2
	status := uint64(serving)
	switch service {
	case "liveness":
	case "", "readiness", "envoy.service.ext_proc.v3.ExternalProcessor":
		if s.cfg.Ready() != nil {
			status = notServing
		}
	default:
		return failure{codes.NotFound, fmt.Errorf("unknown service %q", service)}
	}
	return st.send(putVarint(st.message(), 1, status))
}

// Serve accepts from l until Shutdown, and then returns nil.
func (s *Server) Serve(l net.Listener) error {
	serve := s.http.Serve
	if s.http.TLSConfig != nil {
		serve = func(l net.Listener) error { return s.http.ServeTLS(l, "", "") }
	}
	err := serve(yielding{s.Over(l)})
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serving %s: %w", l.Addr(), err)
}

// yielding is a listener whose connections yield the processor before each write. Other streams can then add their
// replies to the write, which saves system calls.
type yielding struct{ net.Listener }

func (l yielding) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return yieldingConn{c}, nil
}

type yieldingConn struct{ net.Conn }

func (c yieldingConn) Write(p []byte) (int, error) {
	runtime.Gosched()
	return c.Conn.Write(p)
}

// Shutdown accepts no new streams and waits for the open ones until ctx ends. It aborts the remaining ones and waits
// until they have ended.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("streams of Envoy were aborted: %w", err), s.http.Close())
	}
	s.ended.Do(func() {
		for range cap(s.open) {
			s.open <- struct{}{}
		}
	})
	return err
}
