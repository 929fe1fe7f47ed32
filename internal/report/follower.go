package report

import (
	"context"

	"example.org/pilotfish/internal/pool"
)

// follower polls one upstream, one poll at a time.
type follower struct {
	*Poller
	lister
	before totals // as of the report before
}

func newFollower(p *Poller, address string) *follower {
	return &follower{Poller: p, lister: lister{by: &p.asker, address: address}, before: unknownTotals()}
}

// poll asks for the metrics, then for the listing, and hands over what came.
func (f *follower) poll(ctx context.Context) {
	report, err := f.metrics(ctx)
	if err != nil {
		f.fail(ctx, f.address, Metrics, err)
		return
	}
	listingErr := f.list(ctx)
	if ctx.Err() != nil {
		return // it has left meanwhile
	}
	if listingErr == nil && f.cached != nil {
		report.Cached = f.cached
	}
	f.sink(f.address, report)
	if listingErr != nil {
		f.fail(ctx, f.address, CacheListing, listingErr)
	}
}

func (f *follower) metrics(ctx context.Context) (report pool.Report, err error) {
	err = f.fetcher.get(ctx, request{
		url:    upstreamURL(f.address, f.config.MetricsPath),
		accept: "text/plain;version=0.0.4",
		max:    f.config.MaxMetricsBytes,
	}, func(a answer) error {
		page, err := readPage(a.header, a.body, f.config.MaxMetricsLines)
		if err != nil {
			return err
		}
		load, now, err := loadOf(page, f.config.Names)
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
