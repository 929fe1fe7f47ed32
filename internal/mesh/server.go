package mesh

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"

	"example.org/pilotfish/internal/files"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/mesh/h2"
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
	// ErrorLog receives panics and connection errors. Required.
	ErrorLog *log.Logger
}

// maxConns is the maximum number of connections; package h2 bounds the streams of each.
const maxConns = 256

// The gRPC methods of the server, and the maximum size of a health check request.
const (
	processMethod = "/envoy.service.ext_proc.v3.ExternalProcessor/Process"
	healthMethod  = "/grpc.health.v1.Health/Check"
	maxCheck      = 1 << 10
)

// Server serves the external processor, and gRPC's health check.
type Server struct {
	cfg   ServerConfig
	times timeouts
	tls   *tls.Config   // of all connections, so that clients can resume sessions; nil without TLS
	open  chan struct{} // has one token for each open stream
	*lazyconn.Limit

	mu        sync.Mutex
	stopping  bool
	listeners []net.Listener
	conns     map[*h2.Conn]struct{}
	origins   map[string]*origin // IP addresses with open connections
	ended     sync.WaitGroup     // goroutines of connections
}

// NewServer returns a server. Serve starts it.
func NewServer(cfg ServerConfig) *Server {
	var secure *tls.Config
	if cfg.Certificate != nil {
		secure = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: cfg.Certificate, NextProtos: []string{"h2"}}
	}
	return &Server{
		cfg: cfg, times: streamTimes, tls: secure, open: make(chan struct{}, cfg.Streams),
		Limit: lazyconn.NewLimit(maxConns), conns: map[*h2.Conn]struct{}{}, origins: map[string]*origin{},
	}
}

// caller is the other end of a connection: a thread of an Envoy.
type caller struct {
	address string
	*origin
}

// origin is shared by the connections from one IP address, or of one Unix socket.
type origin struct {
	conns int         // open connections; guarded by the server's mutex
	timed atomic.Bool // a response had timedHeader
}

func (s *Server) stream(c *caller, h *h2.Stream) {
	st := &stream{transport: h, budget: s.cfg.Budget, times: s.times}
	select {
	case s.open <- struct{}{}:
		defer func() { <-s.open }()
		st.finish(s.call(c, h.Path, st))
	default:
		st.finish(failure{codes.ResourceExhausted, errors.New("too many streams are open")})
	}
}

// call calls the method. A panic ends only this stream.
func (s *Server) call(c *caller, method string, st *stream) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.cfg.ErrorLog.Printf("mesh: panic serving a stream: %v\n%s", p, debug.Stack())
			err = failure{codes.Internal, errors.New("pilotfish failed; its log has the details")}
		}
	}()
	defer st.close()
	if err := st.open(); err != nil {
		return err
	}
	switch method {
	case processMethod:
		f, done := s.cfg.Filter()
		defer done()
		return f.process(c, st)
	case healthMethod:
		return s.check(st)
	}
	return failure{codes.Unimplemented, errors.New("unknown method")}
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
	l = s.Over(l)
	defer l.Close()
	if !s.listen(l) {
		return nil
	}
	for pause := time.Duration(0); ; {
		nc, err := l.Accept()
		switch {
		case err == nil:
			pause = 0
			go s.serve(nc)
		case s.stopped():
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("serving %s: %w", l.Addr(), err)
		default: // for example, too many open files
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.cfg.ErrorLog.Printf("mesh: accepting a connection: %v; the next try is in %v", err, pause)
			time.Sleep(pause)
		}
	}
}

// listen records the listener, which Shutdown closes. It reports false after Shutdown.
func (s *Server) listen(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners = append(s.listeners, l)
	return !s.stopping
}

func (s *Server) stopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopping
}

// serve serves a connection until it is closed.
func (s *Server) serve(nc net.Conn) {
	defer nc.Close()
	if s.cfg.Certificate != nil {
		ctx, cancel := context.WithTimeout(context.Background(), files.HandshakeTimeout)
		secured := tls.Server(nc, s.tls)
		err := secured.HandshakeContext(ctx)
		if cancel(); err != nil {
			s.cfg.ErrorLog.Printf("mesh: TLS handshake with %s: %v", nc.RemoteAddr(), err)
			return
		}
		nc = secured
	}
	from := &caller{address: nc.RemoteAddr().String()}
	c := h2.New(nc, func(h *h2.Stream) { s.stream(from, h) })
	if !s.add(c, from) {
		return
	}
	defer s.remove(c, from)
	c.Serve()
}

// add records a connection, which Shutdown closes, and its origin. It reports false after Shutdown.
func (s *Server) add(c *h2.Conn, from *caller) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return false
	}
	s.conns[c] = struct{}{}
	s.ended.Add(1)
	if from.origin = s.origins[from.host()]; from.origin == nil {
		from.origin = &origin{}
		s.origins[from.host()] = from.origin
	}
	from.conns++
	return true
}

func (s *Server) remove(c *h2.Conn, from *caller) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	s.ended.Done()
	if from.conns--; from.conns == 0 {
		delete(s.origins, from.host())
	}
}

// host returns the IP address; "" for a Unix socket.
func (c *caller) host() string {
	host, _, _ := net.SplitHostPort(c.address)
	return host
}

// Shutdown accepts no new connections and waits for the open streams until ctx ends. It aborts the remaining ones and waits
// until they have ended.
func (s *Server) Shutdown(ctx context.Context) error {
	s.each((*h2.Conn).Leave)
	ended := make(chan struct{})
	go func() {
		s.ended.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		s.each((*h2.Conn).Close)
		<-ended
		return fmt.Errorf("streams of Envoy were aborted: %w", ctx.Err())
	}
}

// each stops accepting connections, and calls do for each connection. A connection whose client does not read delays
// only its own.
func (s *Server) each(do func(*h2.Conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
	for _, l := range s.listeners {
		_ = l.Close() // fails the second time
	}
	for c := range s.conns {
		go do(c)
	}
}
