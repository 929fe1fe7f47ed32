package mesh

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	ext "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
)

// ServerConfig says what a Server serves.
type ServerConfig struct {
	// Filter is asked for each request; done is called when it has ended. Required.
	Filter func() (f *Filter, done func())
	// Ready says why no request can be placed; nil means that they can. Required.
	Ready func() error
	// MaxBody bounds a body that Envoy sends in one message, in bytes.
	MaxBody int64
	// ErrorLog gets what goes wrong in a stream; nil is the standard logger.
	ErrorLog *log.Logger
}

// Bounds of what callers may take.
const (
	maxConns   = 256
	maxStreams = 10_000    // at one time on one connection
	maxHeaders = 64 << 10  // bytes of a stream's own headers
	maxMargin  = 256 << 10 // bytes of a message besides a body: headers, metadata
	window     = 1 << 20   // bytes on their way in a stream or on a connection
)

// Server serves the external processor, and gRPC's health checks.
type Server struct {
	ext.UnimplementedExternalProcessorServer
	grpc_health_v1.UnimplementedHealthServer
	cfg  ServerConfig
	grpc *grpc.Server
	open atomic.Int64 // connections
}

// NewServer returns a server that listens nowhere yet.
func NewServer(cfg ServerConfig) *Server {
	if cfg.ErrorLog == nil {
		cfg.ErrorLog = log.Default()
	}
	s := &Server{cfg: cfg}
	s.grpc = grpc.NewServer(
		grpc.MaxRecvMsgSize(int(cfg.MaxBody)+maxMargin),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(window),
		grpc.ConnectionTimeout(10*time.Second),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 20 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.ChainStreamInterceptor(s.recover),
	)
	ext.RegisterExternalProcessorServer(s.grpc, s)
	grpc_health_v1.RegisterHealthServer(s.grpc, s)
	return s
}

// Process is the external processor.
func (s *Server) Process(stream ext.ExternalProcessor_ProcessServer) error {
	f, done := s.cfg.Filter()
	defer done()
	return f.process(stream)
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
	err := s.grpc.Serve(&counted{Listener: netutil.LimitListener(l, maxConns), open: &s.open})
	if err == nil || errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return fmt.Errorf("serving %s: %w", l.Addr(), err)
}

// Conns is how many connections are open, and how many may be.
func (s *Server) Conns() (open, most int) { return int(s.open.Load()), maxConns }

// Shutdown takes no new requests and waits for the open ones until ctx ends.
// Those that are left are then cut; what becomes of them is Envoy's to say.
func (s *Server) Shutdown(ctx context.Context) error {
	stop := context.AfterFunc(ctx, s.grpc.Stop)
	s.grpc.GracefulStop()
	if !stop() {
		return fmt.Errorf("streams of Envoy were cut: %w", context.Cause(ctx))
	}
	return nil
}

// counted counts the open connections of a listener.
type counted struct {
	net.Listener
	open *atomic.Int64
}

func (l *counted) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.open.Add(1)
	return &countedConn{Conn: c, left: sync.OnceFunc(func() { l.open.Add(-1) })}, nil
}

type countedConn struct {
	net.Conn
	left func()
}

func (c *countedConn) Close() error {
	defer c.left()
	return c.Conn.Close()
}
