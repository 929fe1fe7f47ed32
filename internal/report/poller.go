package report

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/internal/pool"
)

// upstreamPoller polls one upstream, one poll at a time.
type upstreamPoller struct {
	*Source
	address string
	cancel  context.CancelFunc
	done    chan struct{}
	early   chan struct{} // has a value if the upstream must be polled at once

	listing listing
	failed  int  // consecutive failed polls
	refused bool // whether the last request was refused

	// The following fields belong to the goroutine that reports: with Prometheus, that of pollPrometheus.
	reported bool    // whether the upstream has ever reported
	before   total   // queue times of all jobs up to the last report
	scraped  float64 // time of the last report's scrape, on Prometheus's clock
}

// run polls the upstream until ctx is done.
func (u *upstreamPoller) run(ctx context.Context, rng *rand.Rand) {
	switch {
	case u.cfg.Prometheus == "":
		every(ctx, u.cfg.Interval, rng, u.early, u.poll)
	case u.cfg.CachePath != none:
		every(ctx, u.cfg.cacheInterval(), rng, u.early, func(ctx context.Context, _ bool) pace {
			u.list(ctx)
			return usual
		})
	}
}

// list requests the cache listing, if it has changed, and passes it to the pool. A 404 means that
// the upstream serves no listing, so its cache is unknown; that is not a failure.
func (u *upstreamPoller) list(ctx context.Context) {
	start, l := time.Now(), &u.listing
	err := get(ctx, u.client, request{
		url: upstreamURL(u.address, u.cfg.CachePath), accept: "application/json", etag: l.etag,
		max: maxCacheBytes, timeout: u.cfg.Timeout,
	}, func(resp response) error {
		cached, err := readListing(resp.body, maxProjects, l.cached.Len())
		if err == nil {
			l.cached, l.etag = cached, resp.header.Get("ETag")
		}
		return err
	})
	unchanged := l.etag != "" && statusOf(err) == http.StatusNotModified
	switch {
	case ctx.Err() != nil: // the upstream was removed
	case u.recordRefused(err):
	case err == nil, unchanged:
		u.cfg.Listing(u.address, start, l.cached)
	case statusOf(err) == http.StatusNotFound:
		*l = listing{}
	default:
		u.cfg.Failed(u.address, false, &pollError{u.address, "cache listing", err})
	}
}

// poll requests a report or a health check, and returns when to poll again. An upstream that
// fails after it has reported may hang, so it is polled again soon; such a poll is a check and
// has a shorter timeout. An upstream that never reported and cannot be reached keeps the usual
// interval, so that its start is noticed; one that responds is polled rarely.
func (u *upstreamPoller) poll(ctx context.Context, check bool) pace {
	timeout := u.cfg.Timeout
	if check && u.reported {
		timeout = min(timeout, checkTime)
	}
	query := u.load
	if u.cfg.HealthCheckPath != "" {
		query = u.health
	}
	err := query(ctx, timeout)
	if err == nil {
		u.failed = 0
		return usual
	}
	var op *net.OpError
	reached := !errors.As(err, &op) || op.Op != "dial"
	u.failed++
	switch {
	case u.reported && u.failed <= maxChecks:
		return soon
	case !u.reported && !reached:
		u.failed = 0
	case !u.reported && u.failed >= maxTries:
		return rarely
	}
	return usual
}

// load requests the metrics and the cache listing, and passes them to the pool.
func (u *upstreamPoller) load(ctx context.Context, timeout time.Duration) error {
	var report pool.Report
	var waits total
	err := get(ctx, u.client, request{
		url: upstreamURL(u.address, u.cfg.MetricsPath), accept: acceptMetrics,
		max: maxPageBytes, timeout: timeout,
	}, func(resp response) error {
		figures, err := readPage(resp.header, resp.body, u.metrics)
		if err != nil {
			return err
		}
		report, waits, err = loadOf(figures, u.metrics)
		report.At = resp.at
		return err
	})
	if ctx.Err() == nil && u.recordRefused(err) {
		return err
	}
	if err != nil {
		u.unreported(ctx, err, false)
		return err
	}
	if u.cfg.CachePath != none {
		u.list(ctx) // before the report, so that a choice by the report knows what is cached
	}
	u.report(ctx, report, waits)
	return nil
}

// recordRefused reports whether a request failed because nothing listens at the upstream's address. It calls Checked for
// each such request, and for the first one that reaches the upstream again.
func (u *upstreamPoller) recordRefused(err error) bool {
	var op *net.OpError
	switch {
	case errors.Is(err, health.ErrRefused):
		u.refused = true
		u.cfg.Checked(u.address, err)
	case u.refused && !(errors.As(err, &op) && op.Op == "dial"):
		u.refused = false
		u.cfg.Checked(u.address, nil)
	}
	return errors.Is(err, health.ErrRefused)
}

// health makes a health check instead of requesting a report.
func (u *upstreamPoller) health(ctx context.Context, timeout time.Duration) error {
	err := get(ctx, u.client, request{
		url: upstreamURL(u.address, u.cfg.HealthCheckPath), accept: "*/*", max: maxDrained, timeout: timeout,
	}, func(resp response) error {
		_, err := io.Copy(io.Discard, io.LimitReader(resp.body, maxDrained))
		return err
	})
	if status := statusOf(err); status != 0 && status < http.StatusInternalServerError {
		err = nil
	}
	switch {
	case ctx.Err() != nil:
	case u.cfg.IsShortage(err):
		u.cfg.Failed(u.address, false, &pollError{u.address, "health check", err})
	default:
		u.cfg.Checked(u.address, err)
	}
	return err
}

// report passes a report to the pool, unless the upstream was removed in between.
func (u *upstreamPoller) report(ctx context.Context, r pool.Report, waits total) {
	if ctx.Err() != nil {
		return
	}
	r.Wait = waits.mean(u.before)
	u.before, u.reported = waits, true
	u.cfg.Report(u.address, r)
}

// unreported calls the hooks for a poll without a report, unless ctx ended it. A failure of Prometheus or of this
// process is no evidence against the upstream.
func (u *upstreamPoller) unreported(ctx context.Context, err error, prometheus bool) {
	if ctx.Err() != nil {
		return
	}
	err = &pollError{u.address, "metrics", err}
	u.cfg.Failed(u.address, !u.reported, err)
	if u.reported && !prometheus && !u.cfg.IsShortage(err) {
		u.cfg.Unreported(u.address, err)
	}
}
