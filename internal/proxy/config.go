package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"example.org/pilotfish/internal/job"
	"example.org/pilotfish/internal/proxy/lazyconn"
	"example.org/pilotfish/internal/settings"
)

// Settings is the section "stream" of a configuration file.
type Settings struct {
	// Idle is the idle timeout of a response: the maximum time between two pieces of its
	// body. The default is long, because an upstream can compute for hours between two
	// pieces. TCP keep-alive detects a dead upstream within a minute.
	Idle time.Duration `yaml:"idle"`
	// RequestID adds X-Request-Id, the job's ID in the log, to responses without one.
	// Error responses of pilotfish itself always have it.
	RequestID bool `yaml:"request_id"`
	// ExplainHeaders adds headers to each response that explain the choice of the
	// upstream: Pilotfish-Upstream, -Cache, -Attempts, -Why and -Read.
	ExplainHeaders bool `yaml:"explain_headers"`
}

// Default returns the settings of an empty file.
func Default() Settings { return Settings{Idle: 3 * time.Hour} }

// Check adds invalid values to f.
func (s Settings) Check(f *settings.Faults) { f.Positive("idle", s.Idle) }

// Config is the configuration of a Proxy.
type Config struct {
	job.Config

	// Idle is as in Settings.
	Idle time.Duration
	// Hosts are further names accepted in the Host header, besides localhost, loopback
	// addresses and the address connected to; "*" accepts all.
	Hosts []string
	// Draining reports whether pilotfish is shutting down. Responses then have
	// Connection: close. Required.
	Draining func() bool
	// Dial connects to an upstream. Required.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// IsShortage reports whether the error of a dial is no evidence against the upstream (Lookups). Required.
	IsShortage func(error) bool
}

const (
	// bodyIdle is the total time that a submitter can stop sending its body, in addition to
	// the time that the body takes at 256 bytes/s.
	bodyIdle = 30 * time.Second
	// writeIdle is the timeout for a submitter that reads no byte of its response.
	writeIdle = 5 * time.Minute
	// lingerTime bounds the time for which the rest of a refused HTTP/2 body is read and dropped.
	// lingerIdle bounds the wait for each piece: a submitter that has stopped sending waits for the
	// end of its response.
	lingerTime = 30 * time.Second
	lingerIdle = time.Second

	// idleConns is the maximum number of idle pooled connections per upstream, and
	// idleConnTime their idle timeout.
	idleConns    = 64
	idleConnTime = 50 * time.Second
	// maxResponseHead is the maximum size of a response header, in bytes.
	maxResponseHead = 256 << 10
)

func (c *Config) validate() error {
	if err := c.Check(); err != nil {
		return fmt.Errorf("proxy: %w", err)
	}
	if c.Idle <= 0 {
		return fmt.Errorf("proxy: Idle %v must be positive", c.Idle)
	}
	return nil
}

// queuePause is the pause before another attempt to connect to a Unix socket whose accept queue is full.
const queuePause = 10 * time.Millisecond

// DialUpstream connects to an upstream over TCP or a Unix socket. With TCP, the kernel waits for room in the upstream's accept
// queue; with a Unix socket it returns EAGAIN (on Linux) at once, so DialUpstream waits.
func DialUpstream(ctx context.Context, network, address string) (net.Conn, error) {
	if path, local := settings.UnixPath(address); local {
		network, address = "unix", path
	}
	dialer := &net.Dialer{KeepAliveConfig: lazyconn.KeepAlive()}
	for {
		c, err := dialer.DialContext(ctx, network, address)
		if network != "unix" || !errors.Is(err, syscall.EAGAIN) {
			return c, err
		}
		select {
		case <-time.After(queuePause):
		case <-ctx.Done():
			return nil, fmt.Errorf("the accept queue of %s is full: %w", address, ctx.Err())
		}
	}
}
