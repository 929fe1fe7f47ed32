// Package replay submits the jobs of a trace to real sidecars, or to real
// upstreams, at the times that the trace tells, and measures what the submitters
// see. A job is sent when the trace says so, however late the responses to other
// jobs are: slow upstreams cannot hide that they are slow. A header says what each
// job costs, for reference servers that trust it.
package replay

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/lab/trace"
)

// Settings are what a person sets. The tags make them flags of tracelab replay,
// which takes the defaults from Defaults.
type Settings struct {
	// Targets are where jobs go. A job's submitter chooses among them, as it does
	// among simulated sidecars.
	Targets []string `name:"target" required:"" placeholder:"URL" help:"Where to send jobs, as http://host:port; repeat for more sidecars: a job's submitter chooses."`
	// Speed divides all offsets, costs and timeouts.
	Speed float64 `placeholder:"N" help:"Let time pass this many times as fast: offsets, costs and timeouts are divided by it."`
	// Jobs is how many jobs are sent at most. The rest of the trace is left out.
	Jobs int `placeholder:"N" help:"Send so many at most."`
	// Within bounds the replay. Jobs that have not ended by then are cut.
	Within time.Duration `help:"Cut what is not over by then."`
	// AllowRemote lets targets be other machines than this one.
	AllowRemote bool `help:"Let targets be other machines than this one."`
	// Open is how many jobs may be under way. A job that is due beyond that is late.
	Open int
}

// Defaults are the settings of a replay at the trace's own speed, without a target.
func Defaults() Settings {
	return Settings{Speed: 1, Jobs: 100_000, Within: time.Hour, Open: 10_000}
}

// Check refuses nonsense.
func (s Settings) Check(f *settings.Faults) {
	if !(s.Speed > 0) || math.IsInf(s.Speed, 0) {
		f.Add("speed", "%v is not a positive number", s.Speed)
	}
	f.AtLeast("jobs", int64(s.Jobs), 1)
	f.AtLeast("open", int64(s.Open), 1)
	f.Positive("within", s.Within)
	if len(s.Targets) == 0 {
		f.Add("target", "there is none")
	}
	for _, target := range s.Targets {
		if err := checkTarget(target, s.AllowRemote); err != nil {
			f.Add("target", "%q: %v", target, err)
		}
	}
}

// Config is one replay.
type Config struct {
	Settings
	// Source is the jobs; required.
	Source trace.Source
	// Observe is called once for each job that ends, one call at a time; required.
	Observe func(*Result)
	// Hint reads what an upstream says about a job in the header of a response that
	// began at that instant. Without it, waits at upstreams stay unknown.
	Hint func(http.Header, time.Time) (pool.Hint, bool)
	// Name tells the jobs of this replay from those of others, whose results
	// upstreams may have kept; required, at most 64 bytes.
	Name string
	// Transport carries the jobs; nil keeps 256 connections to each target.
	Transport http.RoundTripper
}

func (c *Config) check() error {
	if c.Source == nil || c.Observe == nil {
		return errors.New("replay: Source and Observe are required")
	}
	if c.Name == "" || len(c.Name) > 64 {
		return fmt.Errorf("replay: a name of %d bytes is not between 1 and 64", len(c.Name))
	}
	var f settings.Faults
	c.Check(&f)
	if err := f.Err(); err != nil {
		return fmt.Errorf("replay: %w", err)
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
		return errors.New("is not on this machine, and a replay is a flood: allow it with --allow-remote")
	}
	return nil
}

// loopback reports whether a host is this machine, without asking anybody.
func loopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// newTransport is of many submitters, who keep their connections.
func newTransport() *http.Transport {
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		DisableCompression:  true,
		MaxIdleConnsPerHost: 256,
		IdleConnTimeout:     time.Minute,
	}
}
