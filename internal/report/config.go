package report

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
)

// Config is what a Poller or a Prometheus is made of. The hooks are called from
// several goroutines, but in order for one upstream.
type Config struct {
	Settings
	// Rand spreads the polls over time. It is required, and from now on only the
	// source may use it.
	Rand *rand.Rand
	// Report takes every report; required.
	Report func(address string, r pool.Report)
	// Listing takes every cache listing that comes without a report; at is when
	// it was asked for, so that it is at least that recent. A Prometheus requires
	// it, and a Poller does not call it.
	Listing func(address string, at time.Time, cached pool.CacheSet)
	// Failed takes an error that names the upstream, for each poll that gave no
	// report and for each cache listing that could not be read; required.
	Failed func(address string, err error)
	// Unreported takes the error of each poll that gave no report, if the error says
	// something about the upstream. Nil takes none.
	Unreported func(address string, why error)
	// Transport carries the requests. Nil is one that uses no proxy, keeps one
	// connection to each upstream and takes at most 64 KiB of headers.
	Transport http.RoundTripper
	// Dial connects to an upstream; nil dials TCP. DialServer connects by TLS to a
	// Prometheus server whose URL begins with https; nil trusts the system's certificates.
	// Neither counts where there is a Transport.
	Dial, DialServer dial
}

// check says what is missing or wrong.
func (c *Config) check() error {
	if c.Rand == nil || c.Report == nil || c.Failed == nil {
		return errors.New("report: Rand, Report and Failed are required")
	}
	var f settings.Faults
	c.Check(&f)
	if err := f.Err(); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// The responses that make up a poll.
const (
	metricsPart = "metrics"
	cachePart   = "cache listing"
)

// maxReason bounds what an error repeats of a response, in bytes.
const maxReason = 300

// pollError is a poll that failed, in whole or in part. Its part is metricsPart
// where there was no report, and cachePart where there was no listing.
type pollError struct {
	address, part string
	err           error
}

func (e *pollError) Error() string {
	reason := e.err.Error()
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "") + "…"
	}
	return fmt.Sprintf("upstream %s: %s: %s", e.address, e.part, reason)
}

func (e *pollError) Unwrap() error { return e.err }

// fail calls Failed, except for a failure that only comes from the end of ctx.
func (c *Config) fail(ctx context.Context, address, part string, err error) {
	if ctx.Err() == nil {
		c.Failed(address, &pollError{address, part, err})
	}
}

// unreported calls both Failed and Unreported, with the same exception.
func (c *Config) unreported(ctx context.Context, address string, err error) {
	c.fail(ctx, address, metricsPart, err)
	if ctx.Err() == nil && c.Unreported != nil {
		c.Unreported(address, &pollError{address, metricsPart, err})
	}
}
