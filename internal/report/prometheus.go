package report

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
)

// maxVectorBytes bounds the response of a Prometheus server. It is enough for
// some ten thousand upstreams.
const maxVectorBytes = 32 << 20

// Prometheus asks a Prometheus server for the load of all upstreams at once, and
// the upstreams themselves only for their cache listings. Its methods are safe
// for concurrent use.
//
// The server must scrape each upstream as one target whose label InstanceLabel
// is the upstream's address, and must keep the label "priority". A report is as
// old as the scrape that it comes from, so an Interval shorter than the server's
// scrape_interval finds nothing new. When a scrape fails, the server forgets the
// upstream at once, and there is no report.
type Prometheus struct {
	cfg      Config
	metrics  metrics
	instance string // label that holds the address
	url      string
	client   client // asks upstreams
	server   client // asks the server
	fanout   fanout // asks for the listings

	set   atomic.Pointer[[]string]
	begun chan struct{} // closed at the first set
	begin func()
	last  map[string]lastScrape // by address; only poll uses it
}

// NewPrometheus returns a Prometheus without upstreams, or says what is wrong
// with the Config.
//
// One goroutine reports for all upstreams, so that Report, and Failed about
// metrics, must not block. Both may still be called for an upstream that has
// just left.
func NewPrometheus(cfg Config) (*Prometheus, error) {
	if cfg.Listing == nil {
		return nil, errors.New("report: Listing is required with Prometheus")
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	server, read := cfg.server(), cfg.Names.metrics(new(settings.Faults))
	p := &Prometheus{
		cfg: cfg, metrics: read, instance: server.InstanceLabel, url: queryURL(server, read),
		client: newUpstreamClient(&cfg), server: newServerClient(&cfg),
		fanout: newFanout(rand.New(rand.NewPCG(cfg.Rand.Uint64(), cfg.Rand.Uint64()))),
		begun:  make(chan struct{}),
	}
	p.begin = sync.OnceFunc(func() { close(p.begun) })
	return p, nil
}

// Follow replaces the set of upstreams to ask about, given by address. It
// never blocks and may be called before Run.
func (p *Prometheus) Follow(addresses []string) {
	set := slices.Clone(addresses)
	p.set.Store(&set)
	p.fanout.set(set)
	p.begin()
}

// Run asks until ctx is done. When it returns, no query, no poll and no
// goroutine is left, and no hook will be called. Call it once.
func (p *Prometheus) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-ctx.Done():
		case <-p.begun: // the first query comes soon after the first upstreams
			every(ctx, p.cfg.Interval, p.cfg.Rand, nil, p.poll)
		}
	})
	p.fanout.run(ctx, func(ctx context.Context, address string, rng *rand.Rand) {
		if p.cfg.CachePath == noListing {
			return
		}
		l := listing{shape: p.cfg.CacheListing}
		every(ctx, p.cfg.cacheInterval(), rng, nil, func(ctx context.Context, _ bool) bool {
			p.list(ctx, address, &l)
			return false
		})
	})
	wg.Wait()
	p.client.http.CloseIdleConnections()
	p.server.http.CloseIdleConnections()
}

// list asks one upstream for its listing and hands it over.
func (p *Prometheus) list(ctx context.Context, address string, l *listing) {
	start := time.Now()
	err := l.update(ctx, p.client, upstreamURL(address, p.cfg.CachePath))
	switch {
	case err != nil:
		p.cfg.fail(ctx, address, cachePart, err)
	case l.cached != nil && ctx.Err() == nil:
		p.cfg.Listing(address, start, l.cached)
	}
}

// poll asks for the load of all upstreams and hands over what is new.
func (p *Prometheus) poll(ctx context.Context, _ bool) (soon bool) {
	scrapes := map[string]*scrape{}
	for _, address := range *p.set.Load() {
		scrapes[address] = newScrape()
	}
	if len(scrapes) == 0 {
		p.last = nil
		return false
	}
	asked, queryErr := p.query(ctx, scrapes)
	last := make(map[string]lastScrape, len(scrapes))
	for address, s := range scrapes {
		before, known := p.last[address]
		if !known {
			before.totals = unknownTotals()
		}
		var r pool.Report
		now, err := before, queryErr
		if err == nil {
			r, now, err = before.next(s, asked, p.metrics)
		}
		last[address] = now
		switch {
		case queryErr != nil:
			p.cfg.fail(ctx, address, metricsPart, fmt.Errorf("Prometheus: %w", err))
		case err != nil:
			p.cfg.unreported(ctx, address, fmt.Errorf("Prometheus: %w", err))
		case !now.at.Equal(before.at) && ctx.Err() == nil:
			p.cfg.Report(address, r)
		}
	}
	p.last = last
	return false
}

// query fills the scrapes with the server's response, and returns when it was
// asked for.
func (p *Prometheus) query(ctx context.Context, scrapes map[string]*scrape) (asked time.Time, err error) {
	err = p.server.get(ctx, request{url: p.url, accept: "application/json", max: maxVectorBytes}, func(resp response) error {
		asked = resp.asked
		return readVector(resp.body, func(x sample) {
			if s := scrapes[x.Labels[p.instance]]; s != nil {
				s.add(x)
			}
		})
	})
	return asked, err
}
