package replay

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/trace"
)

// Source yields a trace's jobs in order of their offsets.
type Source interface {
	// Next returns the next job, or io.EOF at the end.
	Next() (trace.Job, error)
}

// Config is one replay.
type Config struct {
	// Source is the jobs; required.
	Source Source
	// Targets are where jobs go, as http://host:port; at least one. A job's
	// submitter chooses among them, as it does among simulated sidecars.
	Targets []string
	// AllowRemote lets a target be another machine than this one.
	AllowRemote bool
	// Observe is called once for each job that ends, one call at a time; required.
	Observe func(*Result)
	// Hint reads what an upstream tells of a job in the headers of an answer that
	// began at a time; without it, waits at upstreams stay unknown.
	Hint func(http.Header, time.Time) (pool.Hint, bool)
	// Name tells the jobs of this replay from those of others, whose results
	// upstreams may have kept; required, at most 64 bytes.
	Name string

	// Speed divides all offsets, costs and timeouts; 1 by default.
	Speed float64
	// Jobs bounds how many are sent, the rest of the trace is left out; 1,000,000
	// by default. Open bounds those that have not ended: a job that is due beyond
	// it is late; 10,000 by default.
	Jobs, Open int
	// Within bounds the replay: what is not over then is cut; 1 h by default.
	Within time.Duration
}

func (c *Config) validate() error {
	if c.Source == nil || c.Observe == nil {
		return errors.New("replay: Source and Observe are required")
	}
	if c.Name == "" || len(c.Name) > 64 {
		return fmt.Errorf("replay: a name of %d bytes is not between 1 and 64", len(c.Name))
	}
	c.Speed = cmp.Or(c.Speed, 1)
	c.Jobs = cmp.Or(c.Jobs, 1_000_000)
	c.Open = cmp.Or(c.Open, 10_000)
	c.Within = cmp.Or(c.Within, time.Hour)
	switch {
	case !(c.Speed > 0) || math.IsInf(c.Speed, 0):
		return fmt.Errorf("replay: speed %v is not a positive number", c.Speed)
	case c.Jobs < 1:
		return fmt.Errorf("replay: %d jobs are less than one", c.Jobs)
	case c.Open < 1:
		return fmt.Errorf("replay: %d open jobs are less than one", c.Open)
	case c.Within <= 0:
		return fmt.Errorf("replay: a replay within %v is over before it begins", c.Within)
	case len(c.Targets) == 0:
		return errors.New("replay: no target is given")
	}
	for _, target := range c.Targets {
		if err := checkTarget(target, c.AllowRemote); err != nil {
			return fmt.Errorf("replay: target %q: %w", target, err)
		}
	}
	return nil
}

func checkTarget(target string, remote bool) error {
	u, err := url.Parse(target)
	if err != nil {
		return errors.Unwrap(err) // it repeats the target
	}
	if u.Scheme != "http" || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.User != nil {
		return errors.New("want http://host:port")
	}
	if !remote && !loopback(u.Hostname()) {
		return errors.New("is not on this machine, and a replay is a flood: it must be allowed")
	}
	return nil
}

// loopback reports whether a host is this machine, without asking anybody.
func loopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.Unmap().IsLoopback()
}

// transport is of many submitters, who keep their connections.
func (c *Config) transport() *http.Transport {
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		DisableCompression:  true,
		MaxIdleConnsPerHost: 256,
		IdleConnTimeout:     time.Minute,
	}
}
