package mesh

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"math"
	"net"
	"net/http"
	"runtime/debug"
	"time"

	ext "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"example.org/pilotfish/internal/proxy/lazyconn"
)

// ServerConfig says what a Server serves.
type ServerConfig struct {
	// Filter is asked for each request; done is called when it has ended. Required.
	Filter func() (f *Filter, done func())
	// Ready says why no request can be placed; nil means that they can. Required.
	Ready func() error
	// Certificate is what the server shows; nil serves without TLS.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// ErrorLog gets what goes wrong in a stream; nil is the standard logger.
	ErrorLog *log.Logger
}

// Bounds of what callers may take.
const (
	maxConns    = 256
	maxStreams  = 250      // at one time on one connection
	maxHeaders  = 64 << 10 // bytes of a stream's own headers
	streamAhead = 64 << 10 // bytes that have come of a stream, and were not read yet
	connAhead   = 256 << 10
)

// Server serves the external processor, and gRPC's health checks.
type Server struct {
	ext.UnimplementedExternalProcessorServer
	grpc_health_v1.UnimplementedHealthServer
	cfg  ServerConfig
	grpc *grpc.Server
	http *http.Server
	*lazyconn.Limit
}

// NewServer returns a server that listens nowhere yet.
func NewServer(cfg ServerConfig) *Server {
	if cfg.ErrorLog == nil {
		cfg.ErrorLog = log.Default()
	}
	s := &Server{cfg: cfg, Limit: lazyconn.NewLimit(maxConns)}
	s.grpc = grpc.NewServer(grpc.MaxRecvMsgSize(math.MaxInt32), grpc.ChainStreamInterceptor(s.recover))
	ext.RegisterExternalProcessorServer(s.grpc, s)
	grpc_health_v1.RegisterHealthServer(s.grpc, s)
	s.http = &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 10 * time.Second,
		MaxHeaderBytes:    maxHeaders,
		ErrorLog:          cfg.ErrorLog,
		Protocols:         new(http.Protocols),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          maxStreams,
			MaxReceiveBufferPerStream:     streamAhead,
			MaxReceiveBufferPerConnection: connAhead,
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

// stream is what Process needs besides the messages.
type stream struct {
	filter *Filter
	from   *messages
}

// streamKey is the key under which a context has its stream.
type streamKey struct{}

// ServeHTTP serves one stream. gRPC's own server would hold what has come of all messages,
// whatever their sizes.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, done := s.cfg.Filter()
	defer done()
	from := f.messages(w, r)
	defer from.end()
	r = r.WithContext(context.WithValue(r.Context(), streamKey{}, stream{f, from}))
	r.Body = from
	s.grpc.ServeHTTP(w, r)
}

// Process is the external processor.
func (s *Server) Process(p ext.ExternalProcessor_ProcessServer) error {
	of, ok := p.Context().Value(streamKey{}).(stream)
	if !ok {
		return status.Error(codes.Internal, "the stream did not come by ServeHTTP")
	}
	return of.filter.process(p, of.from)
}

// recover keeps a panic to its own stream, as net/http does.
func (s *Server) recover(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.cfg.ErrorLog.Printf("mesh: panic serving a stream: %v\n%s", p, debug.Stack())
			err = status.Error(codes.Internal, "pilotfish failed")
		}
	}()
	return handle(srv, stream)
}

// The services that health checks ask about, as the Endpoint Picker Protocol names them.
const (
	livenessService  = "liveness"
	readinessService = "readiness"
)

// Check is gRPC's health check. The service "" is the whole process.
func (s *Server) Check(_ context.Context, r *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	serving := grpc_health_v1.HealthCheckResponse_SERVING
	switch r.GetService() {
	case livenessService:
	case "", readinessService, ext.ExternalProcessor_ServiceDesc.ServiceName:
		if s.cfg.Ready() != nil {
			serving = grpc_health_v1.HealthCheckResponse_NOT_SERVING
		}
	default:
		return nil, status.Errorf(codes.NotFound, "unknown service %q", r.GetService())
	}
	return &grpc_health_v1.HealthCheckResponse{Status: serving}, nil
}

// Serve accepts from l until Shutdown, and then returns nil.
func (s *Server) Serve(l net.Listener) error {
	serve := s.http.Serve
	if s.http.TLSConfig != nil {
		serve = func(l net.Listener) error { return s.http.ServeTLS(l, "", "") }
	}
	err := serve(s.Over(l))
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serving %s: %w", l.Addr(), err)
}

// Shutdown takes no new requests and waits for the open ones until ctx ends.
// Those that are left are then cut; what becomes of them is Envoy's to say.
func (s *Server) Shutdown(ctx context.Context) error {
	defer s.grpc.GracefulStop() // waits for the streams that were cut
	err := s.http.Shutdown(ctx)
	if err == nil {
		return nil
	}
	return errors.Join(fmt.Errorf("streams of Envoy were cut: %w", err), s.http.Close())
}
