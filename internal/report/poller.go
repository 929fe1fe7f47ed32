package report

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"time"

	"example.org/pilotfish/internal/pool"
)

// upstreamPoller polls one upstream, one poll at a time.
type upstreamPoller struct {
	*Source
	address  string
	listing  listing
	before   total // of the waits, as of the last report
	failed   int   // polls in a row
	reported bool  // at least once
}

func (s *Source) upstream(address string) *upstreamPoller {
	return &upstreamPoller{Source: s, address: address, before: unknown, reported: slices.Contains(s.cfg.Reported, address)}
}

// run asks what is to be asked until ctx is done.
func (u *upstreamPoller) run(ctx context.Context, rng *rand.Rand, early <-chan struct{}) {
	switch {
	case u.cfg.HealthPath != "":
		every(ctx, u.cfg.Interval, rng, early, u.check)
	case u.cfg.Prometheus == "":
		every(ctx, u.cfg.Interval, rng, early, u.poll)
	case u.cfg.CachePath != none:
		every(ctx, u.cfg.cacheInterval(), rng, early, u.list)
	}
}

// list asks for the listing alone, and hands it over.
func (u *upstreamPoller) list(ctx context.Context, _ bool) pace {
	start := time.Now()
	err := u.listing.update(ctx, u.client, u.address, u.cfg.CachePath)
	switch {
	case err != nil:
		u.cfg.unlisted(ctx, u.address, err)
	case u.listing.cached != nil && ctx.Err() == nil:
		u.cfg.Listing(u.address, start, u.listing.cached)
	}
	return usual
}

// poll asks for the metrics, then for the listing, and hands over what came. An upstream
// that fails after it has reported may hang, and is asked again soon. A check is a poll
// for that reason, and has less time.
func (u *upstreamPoller) poll(ctx context.Context, check bool) pace {
	timeout := u.cfg.Timeout
	if check && u.reported {
		timeout = min(timeout, checkTime)
	}
	report, err := u.load(ctx, timeout)
	if err != nil {
		u.cfg.unreported(ctx, u.address, err, u.reported, false)
		return u.afterFailure(err)
	}
	u.reported, u.failed = true, 0
	if u.cfg.CachePath != none {
		err = u.listing.update(ctx, u.client, u.address, u.cfg.CachePath)
	}
	if ctx.Err() != nil {
		return usual // the upstream has left meanwhile
	}
	if err == nil && u.listing.cached != nil {
		report.Cached = u.listing.cached
	}
	u.cfg.Report(u.address, report)
	if err != nil {
		u.cfg.unlisted(ctx, u.address, err)
	}
	return usual
}

// check asks whether the upstream is well, in the place of a poll.
func (u *upstreamPoller) check(ctx context.Context, again bool) pace {
	timeout := u.cfg.Timeout
	if again {
		timeout = min(timeout, checkTime)
	}
	err := u.client.get(ctx, request{
		url: upstreamURL(u.address, u.cfg.HealthPath), accept: "*/*", max: maxPageBytes, timeout: timeout,
	}, func(resp response) error {
		_, err := io.CopyN(io.Discard, resp.body, maxDrained)
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	})
	if ctx.Err() != nil {
		return usual
	}
	if status := statusError(0); errors.As(err, &status) && status < http.StatusInternalServerError {
		err = nil
	}
	u.cfg.Checked(u.address, err)
	if err == nil {
		u.failed = 0
		return usual
	}
	u.reported = true // so that it is asked again soon
	return u.afterFailure(err)
}

// afterFailure is when to ask again. An upstream that cannot be reached may come up, and
// should be asked then.
func (u *upstreamPoller) afterFailure(err error) pace {
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

// load asks for the metrics and makes a report of them.
func (u *upstreamPoller) load(ctx context.Context, timeout time.Duration) (report pool.Report, err error) {
	err = u.client.get(ctx, request{
		url:    upstreamURL(u.address, u.cfg.MetricsPath),
		accept: "text/plain;version=0.0.4",
		max:    maxPageBytes, timeout: timeout,
	}, func(resp response) error {
		figures, err := readPage(resp.header, resp.body, maxPageLines, u.metrics)
		if err != nil {
			return err
		}
		load, now, err := loadOf(figures, u.metrics)
		if err != nil {
			return err
		}
		report = load
		report.At = resp.at
		report.Wait = now.mean(u.before)
		u.before = now
		return nil
	})
	return report, err
}
