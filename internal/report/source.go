// Package report polls every upstream for its load and for the projects that it has
// cached, and passes the results to the pool.
//
// Each upstream has its own poller. An upstream that hangs, floods or sends
// invalid data does not affect the reports of the others. If Prometheus is set, that
// server is queried for the load instead, which saves requests to upstreams with very
// many sidecars. Every response is limited in size and in time. A value that
// cannot be parsed is unknown, never guessed.
package report

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
)

// Config is the configuration of a Source. The hooks are called from several goroutines, but
// in order for one upstream. With Prometheus one goroutine reports for all upstreams, so
// hooks must not block. All fields except Reported and Follow are required.
type Config struct {
	Settings
	// Rand spreads the polls over time. Only the Source may use it.
	Rand *rand.Rand
	// Reported are the addresses of upstreams that have reported to the Source that this one replaces.
	Reported []string
	// Report is called with every report.
	Report func(address string, r pool.Report)
	// Listing is called with every cache listing, before the report of the same poll. at is the
	// time of the request: the listing is at least that recent.
	Listing func(address string, at time.Time, cached pool.CacheSet)
	// Failed is called for each poll without a report, and for each cache listing that could not
	// be read. The error names the upstream. never means that the upstream has never reported,
	// which is no failure: many servers do not report.
	Failed func(address string, never bool, err error)
	// Unreported is called for each poll without a report if the upstream has reported before and
	// the error is its own, not that of Prometheus.
	Unreported func(address string, why error)
	// Checked is called with the result of each health check; why is nil if it passed. It is also called with
	// health.ErrRefused for each refused request, and with nil for the next request that reaches the upstream.
	Checked func(address string, why error)
	// Probed takes the result of each probe; err is nil if it returned the load.
	Probed func(address string, err error)
	// Dial connects to an upstream.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// IsShortage reports whether the error of a poll is no evidence against the upstream.
	IsShortage func(error) bool
	// Follow reads the events of an upstream's cache until ctx is done; nil reads none.
	Follow func(ctx context.Context, address string)
}

// Source polls a set of upstreams, with one goroutine for each. Its methods are safe for
// concurrent use.
type Source struct {
	cfg                Config
	metrics            metrics
	client, prometheus *http.Client  // for requests to upstreams, and to the Prometheus server
	changed            chan []string // the new set, until Run has read it
	reported           map[string]bool

	mu  sync.Mutex
	all map[string]*upstreamPoller // by address
}

// New returns a Source without upstreams. The settings must have been checked.
func New(c Config) *Source {
	reported := make(map[string]bool, len(c.Reported))
	for _, address := range c.Reported {
		reported[address] = true
	}
	return &Source{
		reported: reported,
		cfg:      c, metrics: c.Names.read(new(settings.Faults)), changed: make(chan []string, 1), all: map[string]*upstreamPoller{},
		client: newClient(c.Interval, c.Dial), prometheus: newClient(c.Interval, new(net.Dialer).DialContext),
	}
}

// Follow replaces the set of upstreams, given by address. It never blocks and can be
// called before Run. Polls of removed upstreams are cancelled; those of the others continue.
func (s *Source) Follow(addresses []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.changed: // an older set that Run has not read
	default:
	}
	s.changed <- slices.Clone(addresses)
}

// PollNow starts the next poll of an upstream at once. It never blocks. It does nothing if the
// upstream is not followed, is being polled, or is polled through Prometheus.
func (s *Source) PollNow(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.all[address]
	if u == nil || s.cfg.Prometheus != "" { // Prometheus has nothing newer than its last scrape
		return
	}
	select {
	case u.early <- struct{}{}:
	default:
	}
}

// Run polls until ctx is done. When it returns, all polls and goroutines have
// ended, and no hook is called any more. It must be called once.
func (s *Source) Run(ctx context.Context) {
	if s.cfg.Instead == none {
		<-ctx.Done()
		return
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	if s.cfg.Prometheus != "" {
		rng := s.fork()
		wg.Go(func() {
			every(ctx, s.cfg.Interval, rng, nil, s.pollPrometheus)
			s.prometheus.CloseIdleConnections()
		})
	}
	for {
		select {
		case set := <-s.changed:
			s.adjust(ctx, set)
		case <-ctx.Done():
			s.adjust(ctx, nil)
			s.client.CloseIdleConnections()
			return
		}
	}
}

// fork returns a random source for another goroutine.
func (s *Source) fork() *rand.Rand {
	return rand.New(rand.NewPCG(s.cfg.Rand.Uint64(), s.cfg.Rand.Uint64()))
}

// adjust ends the goroutines of all upstreams that are not in the set, and waits for them, so that an
// upstream that is added again is never polled twice at once. Then it starts the missing ones.
func (s *Source) adjust(ctx context.Context, set []string) {
	s.mu.Lock()
	leaving := maps.Clone(s.all)
	for _, address := range set {
		delete(leaving, address)
	}
	for address, u := range leaving {
		u.cancel()
		delete(s.all, address)
	}
	s.mu.Unlock()
	for _, u := range leaving {
		<-u.done
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, address := range set {
		if s.all[address] == nil {
			s.all[address] = s.start(ctx, address)
		}
	}
}

func (s *Source) upstream(address string) *upstreamPoller {
	return &upstreamPoller{
		Source: s, address: address, done: make(chan struct{}), early: make(chan struct{}, 1), before: unknown,
		reported: s.cfg.HealthCheckPath != "" || s.reported[address],
	}
}

func (s *Source) start(ctx context.Context, address string) *upstreamPoller {
	u, rng := s.upstream(address), s.fork()
	ctx, u.cancel = context.WithCancel(ctx)
	go func() {
		defer close(u.done)
		var events sync.WaitGroup
		defer events.Wait()
		if s.cfg.Follow != nil {
			events.Go(func() { s.cfg.Follow(ctx, address) })
		}
		u.run(ctx, rng)
	}()
	return u
}

// pollError is the failure of a part of a poll: "metrics" or "cache listing".
type pollError struct {
	address, part string
	err           error
}

func (e *pollError) Error() string {
	return fmt.Sprintf("upstream %s: %s: %s", e.address, e.part, settings.Cut(e.err.Error(), settings.MaxText))
}

func (e *pollError) Unwrap() error { return e.err }
