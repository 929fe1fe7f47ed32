package proxy

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// upstreams is the way to all upstreams. Two transports serve: one keeps
// connections for later jobs, the other opens a new one each time, for a job
// whose kept connection turned out dead.
type upstreams struct {
	kept, fresh *http.Transport
}

func newUpstreams(cfg *Config) *upstreams {
	kept := &http.Transport{
		Proxy:                  nil, // never the environment's: an upstream is reached directly
		DialContext:            dialer(cfg.Dial),
		Protocols:              new(http.Protocols),
		DisableCompression:     true, // an answer passes as it is
		MaxIdleConnsPerHost:    cfg.IdleConns,
		MaxIdleConns:           0, // the pool bounds the upstreams
		IdleConnTimeout:        cfg.IdleConnTimeout,
		MaxResponseHeaderBytes: cfg.MaxAnswerHeader,
	}
	kept.Protocols.SetHTTP1(true)
	fresh := kept.Clone()
	fresh.DisableKeepAlives = true
	return &upstreams{kept: kept, fresh: fresh}
}

func (u *upstreams) close() {
	u.kept.CloseIdleConnections()
	u.fresh.CloseIdleConnections()
}

// keepAlive finds a dead peer in about a minute, however long an answer is silent.
func keepAlive() net.KeepAliveConfig {
	return net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 10 * time.Second, Count: 3}
}

type connectTimeout struct{}

// dialer connects to an upstream within the attempt's connect timeout.
func dialer(dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if timeout, ok := ctx.Value(connectTimeout{}).(time.Duration); ok {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, timeout)
			defer cancel()
		}
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, &dialError{timeout: errors.Is(ctx.Err(), context.DeadlineExceeded), err: err}
		}
		return &conn{Conn: c, closed: make(chan struct{})}, nil
	}
}

// dialError is a connection that could not be made.
type dialError struct {
	timeout bool // it took longer than the connect timeout
	err     error
}

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// conn is a connection to an upstream that counts what was sent and received. Embedding
// the interface hides the shortcuts past Write that a *net.TCPConn offers.
type conn struct {
	net.Conn
	written atomic.Int64
	read    atomic.Int64
	once    sync.Once
	closed  chan struct{}
}

// lastWord is how long a failed write waits for an answer that came before
// the failure: an upstream may refuse a job early and close.
const lastWord = 100 * time.Millisecond

func (c *conn) Write(p []byte) (int, error) {
	c.written.Add(int64(len(p))) // before, for the answer may be quicker than the return from Write
	n, err := c.Conn.Write(p)
	c.written.Add(int64(n - len(p)))
	if err != nil {
		select {
		case <-c.closed:
		case <-time.After(lastWord):
		}
	}
	return n, err
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.read.Add(int64(n))
	return n, err
}

func (c *conn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
