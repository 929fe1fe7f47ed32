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

	mu    sync.Mutex
	early map[string]chan struct{} // by address: holds one while an upstream is to be asked early
}

// NewPoller returns a Poller without upstreams, or says what is wrong with the
// Config.
func NewPoller(cfg Config) (*Poller, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	return &Poller{cfg: cfg, client: newClient(&cfg), fanout: newFanout(cfg.Rand), early: map[string]chan struct{}{}}, nil
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
	client  client
	address string
	listing listing
	before  totals // as of the last report
	failed  int    // polls in a row
	heard   bool   // it has reported
}

func newUpstreamPoller(p *Poller, address string) *upstreamPoller {
	return &upstreamPoller{cfg: &p.cfg, client: p.client, address: address, before: unknownTotals()}
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
	err = u.listing.update(ctx, u.client, upstreamURL(u.address, u.cfg.CachePath))
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

	// checkTime is how long a check may take, and how long after the start of a poll that
	// failed the next one begins. After maxChecks of them the polls are as rare as others.
	checkTime = time.Second
	maxChecks = 3
)

// every calls ask repeatedly until ctx is done, with a pause between the starts. It is
// called at once when early tells so, and soon after a call that returned true; such
// calls are checks.
func every(ctx context.Context, interval time.Duration, rng *rand.Rand, early <-chan struct{}, ask func(ctx context.Context, check bool) (soon bool)) {
	timer := time.NewTimer(pause(0, interval, rng))
	defer timer.Stop()
	soon := false
	for n := 1; ; n++ {
		check := soon
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-early:
			check = true
		}
		start := time.Now()
		soon = ask(ctx, check)
		next := pause(n, interval, rng)
		if soon {
			next = min(next, checkTime)
		}
		timer.Reset(next - time.Since(start))
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
