// Package proxy passes jobs on. The files follow a job's way: serve, read, claim,
// attempt, pass, and fail where there is no response to pass on.
package proxy

import (
	"time"

	"example.org/pilotfish/internal/proxy/upstreamclient"
)

// Proxy is the http.Handler that submitters talk to.
type Proxy struct {
	cfg       Config
	guard     Guard
	upstreams *upstreamclient.Client
	linger    time.Duration // lingerTime, but in tests
}

// New returns a Proxy. Close it when no job is left.
func New(cfg Config) (*Proxy, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	upstreams, err := upstreamclient.New(upstreamclient.Config{
		Dial: cfg.Dial, Idle: idleConns, IdleTimeout: idleConnTime, MaxHead: maxAnswerHead,
	})
	if err != nil {
		return nil, err
	}
	return &Proxy{cfg: cfg, guard: NewGuard(cfg.Hosts), upstreams: upstreams, linger: lingerTime}, nil
}

// Close closes the connections to upstreams that no job uses.
func (p *Proxy) Close() { p.upstreams.Close() }
