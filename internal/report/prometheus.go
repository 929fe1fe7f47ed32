package report

import (
	"context"
	"fmt"
	"time"
)

// maxVectorBytes bounds the response of a Prometheus server. It is enough for
// some ten thousand upstreams.
const maxVectorBytes = 32 << 20

// prometheus asks a Prometheus server for the load of all upstreams at once. The upstreams
// themselves are asked only for their cache listings.
//
// The server must scrape each upstream as one target whose label instance is the
// upstream's address, and must keep the label priority. A report is as old as the scrape
// that it comes from, so an Interval shorter than the server's scrape_interval finds
// nothing new. When a scrape fails, the server forgets the upstream at once, and there
// is no report.
type prometheus struct {
	*Source
	url    string
	server client
	last   map[string]lastScrape // by address
}

// lastScrape is the newest scrape of one upstream that was reported.
type lastScrape struct {
	waits    total
	at       float64 // when it was, on Prometheus's clock
	reported bool    // there was one
}

func newPrometheus(s *Source) *prometheus {
	p := &prometheus{Source: s, url: queryURL(s.cfg.Prometheus, s.metrics), server: newClient(&s.cfg, nil), last: map[string]lastScrape{}}
	for _, address := range s.cfg.Reported {
		p.last[address] = lastScrape{waits: unknown, reported: true}
	}
	return p
}

// poll asks for the load of all upstreams and hands over what is new. Without upstreams
// there is nothing to ask: the first should not wait for long.
func (p *prometheus) poll(ctx context.Context, _ bool) pace {
	scrapes := map[string]*scrape{}
	for _, address := range p.following() {
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
