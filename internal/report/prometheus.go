package report

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"example.org/pilotfish/internal/settings"
)

// maxVectorBytes bounds the response of a Prometheus server. It is enough for
// some ten thousand upstreams.
const maxVectorBytes = 32 << 20

// prometheus is a Source that asks a Prometheus server for the load of all upstreams at
// once, and the upstreams themselves only for their cache listings.
//
// The server must scrape each upstream as one target whose label instance is the
// upstream's address, and must keep the label priority. A report is as old as the scrape
// that it comes from, so an Interval shorter than the server's scrape_interval finds
// nothing new. When a scrape fails, the server forgets the upstream at once, and there
// is no report.
type prometheus struct {
	*followers // ask for the listings
	cfg        Config
	metrics    metrics
	url        string
	client     client // asks upstreams
	server     client // asks the server

	set  atomic.Pointer[[]string]
	last map[string]lastScrape // by address; only poll uses it
}

// lastScrape is the newest scrape of one upstream that was reported.
type lastScrape struct {
	waits    total
	at       float64 // when it was, on Prometheus's clock
	reported bool    // there was one
}

func newPrometheus(cfg Config) *prometheus {
	read := cfg.Names.read(new(settings.Faults))
	p := &prometheus{
		cfg: cfg, metrics: read, url: queryURL(cfg.Prometheus, read),
		client: newClient(&cfg, cfg.Dial), server: newClient(&cfg, nil),
		followers: newFollowers(rand.New(rand.NewPCG(cfg.Rand.Uint64(), cfg.Rand.Uint64()))),
		last:      map[string]lastScrape{},
	}
	for _, address := range cfg.Reported {
		p.last[address] = lastScrape{waits: unknown, reported: true}
	}
	p.set.Store(new([]string))
	return p
}

// Follow implements Source.
func (p *prometheus) Follow(addresses []string) {
	set := slices.Clone(addresses)
	p.set.Store(&set)
	p.followers.Follow(set)
}

// Ask implements Source: Prometheus knows nothing newer than its last scrape.
func (p *prometheus) Ask(string) {}

// Run implements Source.
func (p *prometheus) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { every(ctx, p.cfg.Interval, p.cfg.Rand, nil, p.poll) })
	p.run(ctx, func(ctx context.Context, address string, rng *rand.Rand, _ <-chan struct{}) {
		if p.cfg.CachePath == none {
			return
		}
		var l listing
		every(ctx, p.cfg.cacheInterval(), rng, nil, func(ctx context.Context, _ bool) pace {
			p.list(ctx, address, &l)
			return usual
		})
	})
	wg.Wait()
	p.client.http.CloseIdleConnections()
	p.server.http.CloseIdleConnections()
}

// list asks one upstream for its listing and hands it over.
func (p *prometheus) list(ctx context.Context, address string, l *listing) {
	start := time.Now()
	err := l.update(ctx, p.client, address, p.cfg.CachePath)
	switch {
	case err != nil:
		p.cfg.unlisted(ctx, address, err)
	case l.cached != nil && ctx.Err() == nil:
		p.cfg.Listing(address, start, l.cached)
	}
}

// poll asks for the load of all upstreams and hands over what is new. Without upstreams
// there is nothing to ask: the first should not wait for long.
func (p *prometheus) poll(ctx context.Context, _ bool) pace {
	scrapes := map[string]*scrape{}
	for _, address := range *p.set.Load() {
		scrapes[address] = newScrape()
	}
	if len(scrapes) == 0 {
		p.last = nil
		return soon
	}
	asked, failed := p.query(ctx, scrapes)
	last := make(map[string]lastScrape, len(scrapes))
	for address, s := range scrapes {
		before, known := p.last[address]
		if !known {
			before.waits = unknown
		}
		last[address] = before
		if failed != nil {
			p.cfg.unreported(ctx, address, failed, before.reported, true)
			continue
		}
		r, now, err := s.load(asked, p.metrics)
		switch {
		case err != nil:
			p.cfg.unreported(ctx, address, fmt.Errorf("from Prometheus: %w", err), before.reported, false)
		case s.at != before.at && ctx.Err() == nil:
			last[address] = lastScrape{waits: now, at: s.at, reported: true}
			r.Wait = now.mean(before.waits)
			p.cfg.Report(address, r)
		}
	}
	p.last = last
	return usual
}

// query fills the scrapes with the server's response, and returns when it was
// asked for.
func (p *prometheus) query(ctx context.Context, scrapes map[string]*scrape) (asked time.Time, err error) {
	err = p.server.get(ctx, request{url: p.url, accept: "application/json", max: maxVectorBytes}, func(resp response) error {
		asked = resp.asked
		return readVector(resp.body, func(l labels, at, value float64) {
			if s := scrapes[l.Instance]; s != nil {
				s.add(l, at, value)
			}
		})
	})
	if err != nil {
		err = fmt.Errorf("from Prometheus: %w", err)
	}
	return asked, err
}
