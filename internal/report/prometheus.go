package report

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"example.org/pilotfish/internal/pool"
)

// Prometheus asks a Prometheus server for the load of all upstreams at once,
// and only for their cache listings the upstreams themselves. Its methods are
// safe for concurrent use.
//
// The server must scrape each upstream as one target, whose label
// InstanceLabel is the upstream's address, and keep the label "priority". A
// report is as old as the scrape that it comes from, and says so: an Interval
// shorter than the server's scrape_interval finds nothing new. When a target
// fails, the server forgets it at once, and there is no report.
type Prometheus struct {
	asker
	crowd  crowd // asks for the listings
	sink   func(address string, r pool.Report)
	listed func(address string, at time.Time, cached pool.CacheSet)
	url    string
	rng    *rand.Rand // only Run uses it

	set   atomic.Pointer[[]string]
	begun chan struct{} // closed at the first set
	begin func()
	past  map[string]heard // by address; only poll uses it
}

// NewPrometheus returns a Prometheus that follows nobody yet, or says what is
// wrong with the configuration.
//
// sink gets every report; none tells what is cached. listed gets every cache
// listing, as it was at an instant that is not after at. failed gets an *Error
// for each upstream that a query told nothing of, and for every listing that
// could not be read. sink, and failed about metrics, are called from one
// goroutine for all upstreams: they must not block, and may still be called for
// one that has just left. rng spreads the polls and belongs to the Prometheus
// from now on.
func NewPrometheus(
	config Config, rng *rand.Rand,
	sink func(address string, r pool.Report),
	listed func(address string, at time.Time, cached pool.CacheSet),
	failed func(address string, err error),
) (*Prometheus, error) {
	if rng == nil || sink == nil || listed == nil || failed == nil {
		panic("report: NewPrometheus needs a random source, a sink, a listed and a failed function")
	}
	asker, err := newAsker(config, failed)
	if err != nil {
		return nil, err
	}
	p := &Prometheus{
		asker: asker, sink: sink, listed: listed,
		crowd: newCrowd(rand.New(rand.NewPCG(rng.Uint64(), rng.Uint64()))),
		url:   queryURL(asker.config.Prometheus, asker.config.Names),
		rng:   rng,
		begun: make(chan struct{}),
	}
	p.begin = sync.OnceFunc(func() { close(p.begun) })
	return p, nil
}

// Follow replaces the set of upstreams to ask about, given by address. It
// never blocks and may be called before Run.
func (p *Prometheus) Follow(addresses []string) {
	set := slices.Clone(addresses)
	p.set.Store(&set)
	p.crowd.Follow(set)
	p.begin()
}

// Run asks until ctx is done. When it returns, no query, no poll and no
// goroutine is left, and no function will be called. Call it once.
func (p *Prometheus) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-ctx.Done():
		case <-p.begun: // the first query comes soon after the first upstreams
			every(ctx, p.config.Interval, p.rng, p.poll)
		}
	})
	p.crowd.run(ctx, func(ctx context.Context, address string, rng *rand.Rand) {
		l := &lister{by: &p.asker, address: address}
		every(ctx, p.config.CacheInterval, rng, func(ctx context.Context) { p.list(ctx, l) })
	})
	wg.Wait()
	p.fetcher.client.CloseIdleConnections()
}

// list asks one upstream for its listing and hands it over.
func (p *Prometheus) list(ctx context.Context, l *lister) {
	start := time.Now()
	err := l.list(ctx)
	switch {
	case err != nil:
		p.fail(ctx, l.address, CacheListing, err)
	case l.cached != nil && ctx.Err() == nil:
		p.listed(l.address, start, l.cached)
	}
}

// poll asks for the load of all upstreams and hands over what is new.
func (p *Prometheus) poll(ctx context.Context) {
	scrapes := map[string]*scrape{}
	for _, address := range *p.set.Load() {
		scrapes[address] = newScrape()
	}
	if len(scrapes) == 0 {
		p.past = nil
		return
	}
	asked, err := p.ask(ctx, scrapes)
	past := make(map[string]heard, len(scrapes))
	for address, s := range scrapes {
		h, ok := p.past[address]
		if !ok {
			h.totals = unknownTotals()
		}
		r, news, bad := pool.Report{}, false, err
		if bad == nil {
			r, news, bad = h.learn(s, asked, p.config.Names)
		}
		past[address] = h
		switch {
		case bad != nil:
			p.fail(ctx, address, Metrics, fmt.Errorf("Prometheus: %w", bad))
		case news && ctx.Err() == nil:
			p.sink(address, r)
		}
	}
	p.past = past
}

// ask fills the scrapes. asked is when.
func (p *Prometheus) ask(ctx context.Context, scrapes map[string]*scrape) (asked time.Time, err error) {
	err = p.fetcher.get(ctx, request{
		url:    p.url,
		accept: "application/json",
		max:    p.config.Prometheus.MaxBytes,
	}, func(a answer) error {
		asked = a.asked
		return readVector(a.body, func(x sample) {
			if s := scrapes[x.Labels[p.config.Prometheus.InstanceLabel]]; s != nil {
				s.add(x)
			}
		})
	})
	return asked, err
}
