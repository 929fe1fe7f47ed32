// Package report asks every upstream at intervals how loaded it is and which
// projects it has cached, and hands the responses over as reports.
//
// A poller asks the upstreams themselves. One that hangs, floods or sends
// nonsense does not affect the reports of the others. Where Prometheus is set, the
// server that scrapes the upstreams is asked, which spares upstreams that have very
// many sidecars. Every response is bounded in size and in time, and a value that
// cannot be understood is unknown, never guessed.
package report

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
)

// Config is what a Source is made of. The hooks are called from several goroutines, but
// in order for one upstream. With Prometheus one goroutine reports for all upstreams, so
// that the hooks must not block there. All but Transport and Dial is required.
type Config struct {
	Settings
	// Rand spreads the polls over time. From now on only the source may use it.
	Rand *rand.Rand
	// Reported are upstreams, by address, that have reported to the source before this one.
	Reported []string
	// Report takes every report.
	Report func(address string, r pool.Report)
	// Listing takes every cache listing that comes without a report; at is when
	// it was asked for, so that it is at least that recent.
	Listing func(address string, at time.Time, cached pool.CacheSet)
	// Failed takes an error that names the upstream, for each poll that gave no report
	// though the upstream has reported before, and for each cache listing that could not
	// be read.
	Failed func(address string, err error)
	// Unreported takes the first kind of these errors if it says something about the
	// upstream, not about Prometheus.
	Unreported func(address string, why error)
	// Checked takes each health check of an upstream; why is nil if it passed.
	Checked func(address string, why error)
	// Silent takes the error of each poll of an upstream that has never reported. That is
	// no failure: many servers report nothing.
	Silent func(address string, why error)
	// Transport carries the requests. Nil is one that uses no proxy, keeps one
	// connection to each upstream and takes at most 64 KiB of headers.
	Transport http.RoundTripper
	// Dial connects to an upstream; nil dials TCP. It does not count where there is a Transport.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Source reports for a set of upstreams. Its methods are safe for concurrent use.
type Source interface {
	// Follow replaces the set of upstreams to ask, given by address. It never blocks
	// and may be called before Run. Polls of those that leave stop within a moment.
	Follow(addresses []string)
	// Ask makes the next poll of an upstream come at once. It never blocks. An upstream
	// that is not followed, is being asked already, or is asked of Prometheus, is left alone.
	Ask(address string)
	// Run polls until ctx is done. When it returns, no poll and no goroutine is
	// left, and no hook will be called. Call it once.
	Run(ctx context.Context)
}

// New returns a Source without upstreams, or says what is wrong with the Config.
func New(c Config) (Source, error) {
	if c.Rand == nil || c.Report == nil || c.Listing == nil || c.Failed == nil || c.Unreported == nil || c.Checked == nil || c.Silent == nil {
		return nil, errors.New("report: Rand and all hooks are required")
	}
	var f settings.Faults
	c.Check(&f)
	if err := f.Err(); err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	switch {
	case c.Instead == none:
		return nobody{}, nil
	case c.Prometheus != "":
		return newPrometheus(c), nil
	}
	return newPoller(c), nil
}

// nobody asks nobody.
type nobody struct{}

func (nobody) Follow([]string)         {}
func (nobody) Ask(string)              {}
func (nobody) Run(ctx context.Context) { <-ctx.Done() }

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

// unlisted hands over why a cache listing could not be read, unless only because ctx ended.
func (c *Config) unlisted(ctx context.Context, address string, err error) {
	if ctx.Err() == nil {
		c.Failed(address, &pollError{address, cachePart, err})
	}
}

// unreported hands over why a poll gave no report, unless only because ctx ended. The
// upstream may have reported before; the fault may be another's, Prometheus's.
func (c *Config) unreported(ctx context.Context, address string, err error, before, others bool) {
	if ctx.Err() != nil {
		return
	}
	err = &pollError{address, metricsPart, err}
	if !before {
		c.Silent(address, err)
		return
	}
	c.Failed(address, err)
	if !others {
		c.Unreported(address, err)
	}
}
