package report

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"pilotfish/internal/pool"
)

// follower polls one upstream, one poll at a time.
type follower struct {
	*Poller
	address string
	rng     *rand.Rand
	before  totals // as of the report before
	cached  *Projects
	etag    string // of the listing that gave cached; "" is none
}

func newFollower(p *Poller, address string, rng *rand.Rand) *follower {
	return &follower{Poller: p, address: address, rng: rng, before: unknownTotals()}
}

// run polls until ctx is done.
func (f *follower) run(ctx context.Context) {
	timer := time.NewTimer(pace(0, f.config.Interval, f.rng))
	defer timer.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		start := time.Now()
		f.poll(ctx)
		timer.Reset(pace(n, f.config.Interval, f.rng) - time.Since(start))
	}
}

// poll asks for the metrics, then for the listing, and hands over what came.
func (f *follower) poll(ctx context.Context) {
	report, err := f.metrics(ctx)
	if err != nil {
		f.fail(ctx, Metrics, err)
		return
	}
	listingErr := f.listing(ctx)
	if ctx.Err() != nil {
		return // it has left meanwhile
	}
	if listingErr == nil && f.cached != nil {
		report.Cached = f.cached
	}
	f.sink(f.address, report)
	if listingErr != nil {
		f.fail(ctx, CacheListing, listingErr)
	}
}

// fail reports a failure, unless it only comes from ending.
func (f *follower) fail(ctx context.Context, part Part, err error) {
	if ctx.Err() == nil {
		f.failed(f.address, &Error{Address: f.address, Part: part, Err: err})
	}
}

func (f *follower) metrics(ctx context.Context) (report pool.Report, err error) {
	err = f.fetcher.get(ctx, request{
		url:    f.url(f.config.MetricsPath),
		accept: "text/plain;version=0.0.4",
		max:    f.config.MaxMetricsBytes,
	}, func(a answer) error {
		page, err := readPage(a.header, a.body, f.config.MaxMetricsLines)
		if err != nil {
			return err
		}
		load, now, err := page.load(f.config.Names)
		if err != nil {
			return err
		}
		report = load
		report.At = a.at
		report.Wait, report.Response = now.since(f.before)
		f.before = now
		return nil
	})
	return report, err
}

// listing brings cached up to date. An upstream without a listing, as its 404
// says, has nothing known cached, and that is no failure.
func (f *follower) listing(ctx context.Context) error {
	err := f.fetcher.get(ctx, request{
		url:    f.url(f.config.CachePath),
		accept: "application/json",
		etag:   f.etag,
		max:    f.config.MaxCacheBytes,
	}, func(a answer) error {
		projects, err := readListing(a.body, f.config.MaxProjects, f.cached.Len())
		if err != nil {
			return err
		}
		f.cached, f.etag = projects, a.header.Get("ETag")
		return nil
	})
	switch {
	case f.etag != "" && errors.Is(err, statusError(http.StatusNotModified)):
		return nil
	case errors.Is(err, statusError(http.StatusNotFound)):
		f.cached, f.etag = nil, ""
		return nil
	}
	return err
}

// url returns where path is at the upstream. The path was checked by New.
func (f *follower) url(path string) string {
	return (&url.URL{Scheme: "http", Host: f.address}).String() + path
}
