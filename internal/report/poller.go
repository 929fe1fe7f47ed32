// Package report asks every upstream at intervals how loaded it is and which
// projects it has cached, and hands the responses over as reports.
//
// A Poller asks the upstreams themselves. One that hangs, floods or sends
// nonsense does not affect the reports of the others. A Prometheus asks the
// server that scrapes the upstreams, which spares upstreams that have very many
// sidecars. Every response is bounded in size and in time, and a value that
// cannot be understood is unknown, never guessed.
package report

import (
	"context"
	"math/rand/v2"
	"time"

	"example.org/pilotfish/internal/pool"
)

// Bounds on the metrics of one upstream. A line may cost far more memory than
// its bytes.
const (
	maxMetricsBytes = 4 << 20
	maxMetricsLines = 50_000
)

// Poller polls a set of upstreams. Its methods are safe for concurrent use.
type Poller struct {
	cfg    Config
	client client
	fanout fanout
}

// NewPoller returns a Poller without upstreams, or says what is wrong with the
// Config.
func NewPoller(cfg Config) (*Poller, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	return &Poller{cfg: cfg, client: newClient(&cfg), fanout: newFanout(cfg.Rand)}, nil
}

// Follow replaces the set of upstreams to ask, given by address. It never blocks
// and may be called before Run. Polls of those that leave stop within a moment.
func (p *Poller) Follow(addresses []string) { p.fanout.set(addresses) }

// Run polls until ctx is done. When it returns, no poll and no goroutine is
// left, and no hook will be called. Call it once.
func (p *Poller) Run(ctx context.Context) {
	p.fanout.run(ctx, func(ctx context.Context, address string, rng *rand.Rand) {
		every(ctx, p.cfg.Interval, rng, newUpstreamPoller(p, address).poll)
	})
	p.client.http.CloseIdleConnections()
}

// upstreamPoller polls one upstream, one poll at a time.
type upstreamPoller struct {
	cfg     *Config
	client  client
	address string
	listing listing
	before  totals // as of the last report
}

func newUpstreamPoller(p *Poller, address string) *upstreamPoller {
	return &upstreamPoller{cfg: &p.cfg, client: p.client, address: address, before: unknownTotals()}
}

// poll asks for the metrics, then for the listing, and hands over what came.
func (u *upstreamPoller) poll(ctx context.Context) {
	report, err := u.load(ctx)
	if err != nil {
		u.cfg.fail(ctx, u.address, metricsPart, err)
		return
	}
	err = u.listing.update(ctx, u.client, upstreamURL(u.address, u.cfg.CachePath))
	if ctx.Err() != nil {
		return // the upstream has left meanwhile
	}
	if err == nil && u.listing.cached != nil {
		report.Cached = u.listing.cached
	}
	u.cfg.Report(u.address, report)
	if err != nil {
		u.cfg.fail(ctx, u.address, cachePart, err)
	}
}

// load asks for the metrics and makes a report of them.
func (u *upstreamPoller) load(ctx context.Context) (report pool.Report, err error) {
	err = u.client.get(ctx, request{
		url:    upstreamURL(u.address, u.cfg.MetricsPath),
		accept: "text/plain;version=0.0.4",
		max:    maxMetricsBytes,
	}, func(resp response) error {
		page, err := readPage(resp.header, resp.body, maxMetricsLines)
		if err != nil {
			return err
		}
		load, now, err := loadOf(page, u.cfg.Names)
		if err != nil {
			return err
		}
		report = load
		report.At = resp.at
		report.Wait, report.Response = now.since(u.before)
		u.before = now
		return nil
	})
	return report, err
}

const (
	jitter     = 0.2 // share by which an interval may be longer or shorter
	firstShare = 0.1 // share of an interval within which the first poll comes
)

// every calls ask repeatedly until ctx is done, with a pause between the starts.
func every(ctx context.Context, interval time.Duration, rng *rand.Rand, ask func(context.Context)) {
	timer := time.NewTimer(pause(0, interval, rng))
	defer timer.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		start := time.Now()
		ask(ctx)
		timer.Reset(pause(n, interval, rng) - time.Since(start))
	}
}

// pause returns the time from the start of poll number n to the start of the
// next. Before the first poll, n is 0.
//
// The first poll comes soon, because a sidecar without a report chooses blindly.
// The second comes anywhere within an interval, so that sidecars that learnt of
// an upstream together do not ask it together from then on. The jitter keeps
// them apart.
func pause(n int, interval time.Duration, rng *rand.Rand) time.Duration {
	share := rng.Float64()
	switch n {
	case 0:
		share *= firstShare
	case 1:
		// as it is: a random phase
	default:
		share = 1 - jitter + 2*jitter*share
	}
	return time.Duration(share * float64(interval))
}
