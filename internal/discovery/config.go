package discovery

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"example.org/pilotfish/internal/pool"
)

// Bounds and defaults.
const (
	// DefaultMaxUpstreams bounds a set.
	DefaultMaxUpstreams = 10_000
	// DefaultLifetime is how long a pre-emptible upstream lives at most, if it does not say.
	DefaultLifetime = 24 * time.Hour
)

// Config says where upstreams come from. Exactly one of Static, File, DNS and
// Consul must be set.
type Config struct {
	// Static is a fixed list of addresses, host:port.
	Static []string
	File   *FileConfig
	DNS    *DNSConfig
	Consul *ConsulConfig

	// Own is the addresses on which the sidecar itself listens. An upstream among
	// them is left out; an unspecified host stands for all of this machine's.
	Own []string
	// Guard says when a doubtful answer is believed. A static list is never in doubt.
	Guard GuardConfig
	// Snapshot is the file that keeps the last set over a restart; empty keeps none.
	Snapshot string
	// Last is the set in force of the Discovery of the same source that this one
	// takes over from: the last good set, until the source is believed. Nil is none.
	Last []pool.Upstream
	// MaxUpstreams bounds an answer; a larger one counts as a failure. Default 10,000.
	MaxUpstreams int
	// Lifetime is how long after its start a pre-emptible upstream stops, unless
	// it tells itself. Default 24 h.
	Lifetime time.Duration
	// Observe is called from Run's goroutine after every answer and failure. It must
	// not block. Nil observes nothing.
	Observe func(Status)
}

// origin is a source, its name, and how often it may be asked.
type origin struct {
	source
	name string
	pace pace
}

func (c *Config) validate() error {
	set := 0
	for _, is := range []bool{c.Static != nil, c.File != nil, c.DNS != nil, c.Consul != nil} {
		if is {
			set++
		}
	}
	if set != 1 {
		return fmt.Errorf("discovery: want exactly one of static, file, dns and consul, got %d", set)
	}
	if c.MaxUpstreams < 0 {
		return fmt.Errorf("discovery: at most %d upstreams: want a positive number", c.MaxUpstreams)
	}
	if c.Lifetime < 0 {
		return fmt.Errorf("discovery: lifetime of %s: want a positive duration", c.Lifetime)
	}
	if c.MaxUpstreams == 0 {
		c.MaxUpstreams = DefaultMaxUpstreams
	}
	if c.Lifetime == 0 {
		c.Lifetime = DefaultLifetime
	}
	if len(c.Static) > c.MaxUpstreams {
		return fmt.Errorf("discovery: a list of %d upstreams, at most %d are allowed", len(c.Static), c.MaxUpstreams)
	}
	if c.Static != nil && c.Last != nil {
		return errors.New("discovery: a static list takes over nothing")
	}
	if c.Static != nil && c.Snapshot != "" {
		return errors.New("discovery: a static list needs no snapshot")
	}
	return nil
}

// origin opens the one source that is set.
func (c *Config) origin() (origin, error) {
	switch {
	case c.Static != nil:
		return newStatic(c.Static)
	case c.File != nil:
		return newFile(*c.File, c.Lifetime)
	case c.DNS != nil:
		return newDNS(*c.DNS)
	}
	return newConsul(*c.Consul, c.Lifetime)
}

// own spells out c.Own, asking for this machine's addresses only if they matter.
func (c *Config) own() (own, error) {
	var local []netip.Addr
	for _, l := range c.Own {
		if strings.HasPrefix(l, ":") || strings.HasPrefix(l, "0.0.0.0:") || strings.HasPrefix(l, "[::]:") {
			var err error
			if local, err = localAddresses(); err != nil {
				return nil, err
			}
			break
		}
	}
	return newOwn(c.Own, local)
}
