package proxy

import (
	"context"
	"fmt"
	"net"
	"time"

	"example.org/pilotfish/internal/job"
	"example.org/pilotfish/internal/proxy/lazyconn"
	"example.org/pilotfish/internal/settings"
)

// Settings is the section "stream" of a configuration file.
type Settings struct {
	// Idle is the longest time between two pieces of a response. It is long by
	// default, because an upstream may compute for hours between two pieces: one
	// that is dead, and not silent, is found out within a minute.
	Idle time.Duration `yaml:"idle"`
	// RequestID adds X-Request-Id to each response that has none: the job's identifier in
	// the log. Problems of pilotfish's own always have it.
	RequestID bool `yaml:"request_id"`
	// ExplainHeaders adds headers to each response that say which upstream was
	// picked, and why: Pilotfish-Upstream, -Cache, -Attempts, -Why and -Read.
	ExplainHeaders bool `yaml:"explain_headers"`
}

// Default is the settings of an empty file.
func Default() Settings { return Settings{Idle: 3 * time.Hour} }

// Check reports what cannot be used.
func (s Settings) Check(f *settings.Faults) { f.Positive("idle", s.Idle) }

// Config says how jobs are read, attempted and answered.
type Config struct {
	job.Config

	// Idle is as in Settings.
	Idle time.Duration
	// Hosts are names that a submitter may put in the Host header besides
	// localhost, loopback addresses and the address it connected to; "*" allows all.
	Hosts []string
	// Draining reports whether the process takes no more jobs: responses that begin then carry
	// Connection: close. nil is never.
	Draining func() bool
	// Dial connects to an upstream until ctx ends; nil is DialUpstream.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

const (
	// bodyIdle is how long a submitter may be silent while it sends a body, in total, beyond
	// the time that 256 bytes/s take.
	bodyIdle = 30 * time.Second
	// writeIdle bounds how long a submitter may take no byte of a response.
	writeIdle = 5 * time.Minute
	// lingerTime bounds how long the rest of a refused body is read in HTTP/2, and
	// lingerIdle how long the next byte may take: a submitter that has stopped sending waits for the end
	// of its response.
	lingerTime = 30 * time.Second
	lingerIdle = time.Second

	// idleConns is how many connections to each upstream are pooled for later jobs, and
	// idleConnTime for how long.
	idleConns    = 64
	idleConnTime = 50 * time.Second
	// maxAnswerHead bounds the head of a response, in bytes.
	maxAnswerHead = 256 << 10
)

func (c *Config) validate() error {
	if c.Dial == nil {
		c.Dial = DialUpstream
	}
	if c.Draining == nil {
		c.Draining = func() bool { return false }
	}
	if err := c.Check(); err != nil {
		return fmt.Errorf("proxy: %w", err)
	}
	if c.Idle <= 0 {
		return fmt.Errorf("proxy: Idle %v must be positive", c.Idle)
	}
	return nil
}

// DialUpstream connects to upstreams, also by sockets in the file system.
func DialUpstream(ctx context.Context, network, address string) (net.Conn, error) {
	if path, local := settings.UnixPath(address); local {
		network, address = "unix", path
	}
	dialer := &net.Dialer{KeepAliveConfig: lazyconn.KeepAlive()}
	return dialer.DialContext(ctx, network, address)
}
