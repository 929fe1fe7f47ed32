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
	"sync"
	"time"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
)

// Bounds on the metrics of one upstream. A line may cost far more memory than
// its bytes.
const (
	maxMetricsBytes = 4 << 20
	maxMetricsLines = 50_000
)

// Poller polls a set of upstreams. Its methods are safe for concurrent use.
type Poller struct {
	cfg     Config
	metrics metrics
	client  client
	fanout  fanout

	mu    sync.Mutex
	early map[string]chan struct{} // by address: holds one while an upstream is to be asked early
}

// NewPoller returns a Poller without upstreams, or says what is wrong with the
// Config.
func NewPoller(cfg Config) (*Poller, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	return &Poller{
		cfg: cfg, metrics: cfg.Names.metrics(new(settings.Faults)), client: newUpstreamClient(&cfg),
		fanout: newFanout(cfg.Rand), early: map[string]chan struct{}{},
	}, nil
}

// Follow replaces the set of upstreams to ask, given by address. It never blocks
// and may be called before Run. Polls of those that leave stop within a moment.
func (p *Poller) Follow(addresses []string) { p.fanout.set(addresses) }

// Run polls until ctx is done. When it returns, no poll and no goroutine is
// left, and no hook will be called. Call it once.
func (p *Poller) Run(ctx context.Context) {
	p.fanout.run(ctx, func(ctx context.Context, address string, rng *rand.Rand) {
		early := make(chan struct{}, 1)
		p.askEarly(address, early)
		defer p.askEarly(address, nil)
		every(ctx, p.cfg.Interval, rng, early, newUpstreamPoller(p, address).poll)
	})
	p.client.http.CloseIdleConnections()
}

// askEarly notes on which channel an upstream's goroutine hears of Ask; nil is none.
func (p *Poller) askEarly(address string, early chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if early == nil {
		delete(p.early, address)
		return
	}
	p.early[address] = early
}

// Ask makes the next poll of an upstream come at once. It never blocks. An upstream
// that is not followed, or is being asked already, is left alone.
func (p *Poller) Ask(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case p.early[address] <- struct{}{}: // a nil channel takes nothing
	default:
	}
}

// upstreamPoller polls one upstream, one poll at a time.
type upstreamPoller struct {
	cfg     *Config
	metrics metrics
	client  client
	address string
	listing listing
	before  totals // as of the last report
	failed  int    // polls in a row
	heard   bool   // it has reported
}

func newUpstreamPoller(p *Poller, address string) *upstreamPoller {
	return &upstreamPoller{cfg: &p.cfg, metrics: p.metrics, client: p.client, address: address, before: unknownTotals(), listing: listing{shape: p.cfg.CacheListing}}
}

// poll asks for the metrics, then for the listing, and hands over what came. It returns
// whether to ask again soon: an upstream that fails after it has reported may hang. A
// check is a poll for that reason, and has less time.
func (u *upstreamPoller) poll(ctx context.Context, check bool) (soon bool) {
	timeout := u.cfg.Timeout
	if check && u.heard {
		timeout = min(timeout, checkTime)
	}
	report, err := u.load(ctx, timeout)
	if err != nil {
		u.cfg.unreported(ctx, u.address, err)
		u.failed++
		return u.heard && u.failed <= maxChecks
	}
	u.heard, u.failed = true, 0
	if u.cfg.CachePath != noListing {
		err = u.listing.update(ctx, u.client, upstreamURL(u.address, u.cfg.CachePath))
	}
	if ctx.Err() != nil {
		return false // the upstream has left meanwhile
	}
	if err == nil && u.listing.cached != nil {
		report.Cached = u.listing.cached
	}
	u.cfg.Report(u.address, report)
	if err != nil {
		u.cfg.fail(ctx, u.address, cachePart, err)
	}
	return false
}

// load asks for the metrics and makes a report of them.
func (u *upstreamPoller) load(ctx context.Context, timeout time.Duration) (report pool.Report, err error) {
	err = u.client.get(ctx, request{
		url:    upstreamURL(u.address, u.cfg.MetricsPath),
		accept: "text/plain;version=0.0.4",
		max:    maxMetricsBytes, timeout: timeout,
	}, func(resp response) error {
		page, err := readPage(resp.header, resp.body, maxMetricsLines)
		if err != nil {
			return err
		}
		load, now, err := loadOf(page, u.metrics)
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
