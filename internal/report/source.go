// Package report asks every upstream at intervals how loaded it is and which
// projects it has cached, and hands the responses over as reports.
//
// A poller asks the upstreams themselves. One that hangs, floods or sends
// nonsense does not affect the reports of the others. Where Prometheus is set, the
// server that scrapes the upstreams is asked, which spares upstreams that have very
// many sidecars. Every response is bounded in size and in time, and a value that
// cannot be understood is unknown, never guessed.
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

// Config is what a Source is made of. The hooks are called from several goroutines, but
// in order for one upstream. With Prometheus one goroutine reports for all upstreams, so
// that the hooks must not block there. All but Reported is required.
type Config struct {
	Settings
	// Rand spreads the polls over time. From now on only the source may use it.
	Rand *rand.Rand
	// Reported are upstreams, by address, that have reported to the source before this one.
	Reported []string
	// Report takes every report.
	Report func(address string, r pool.Report)
	// Listing takes every cache listing; at is when it was asked for, so that it is at least
	// that recent. It comes before the report of the same poll.
	Listing func(address string, at time.Time, cached pool.CacheSet)
	// Failed takes an error that names the upstream, for each poll that gave no report, and
	// for each cache listing that could not be read. Where the upstream has never reported
	// that is no failure: many servers report nothing.
	Failed func(address string, never bool, err error)
	// Unreported takes the first kind of these errors if the upstream has reported before and
	// the error says something about it, not about Prometheus.
	Unreported func(address string, why error)
	// Checked takes each health check of an upstream; why is nil if it passed. It also takes each request that the upstream
	// refused, as pool.ErrRefused, and the first one after that which reached it.
	Checked func(address string, why error)
	// Dial connects to an upstream.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Source reports for a set of upstreams, with one goroutine for each. Its methods are safe for
// concurrent use.
type Source struct {
	cfg                Config
	metrics            metrics
	client, prometheus *http.Client  // ask upstreams, and the Prometheus server
	changed            chan []string // holds the set while Run has not seen it
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

// Follow replaces the set of upstreams to ask, given by address. It never blocks and may be
// called before Run. Those that stay are not disturbed; polls of those that leave stop within a moment.
func (s *Source) Follow(addresses []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.changed: // nobody needs it any more
	default:
	}
	s.changed <- slices.Clone(addresses)
}

// Ask makes the next poll of an upstream come at once. It never blocks. An upstream
// that is not followed, is being asked already, or is asked of Prometheus, is left alone.
func (s *Source) Ask(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.all[address]
	if u == nil || s.cfg.Prometheus != "" { // which knows nothing newer than its last scrape
		return
	}
	select {
	case u.early <- struct{}{}:
	default:
	}
}

// Run polls until ctx is done. When it returns, no poll and no goroutine is
// left, and no hook will be called. Call it once.
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

// fork is a random source for another goroutine.
func (s *Source) fork() *rand.Rand {
	return rand.New(rand.NewPCG(s.cfg.Rand.Uint64(), s.cfg.Rand.Uint64()))
}

// adjust ends the goroutines of all upstreams that are not in the set, and waits for them: one
// that comes back is never asked twice at once. Then it starts those that are missing.
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

// start runs an upstream's goroutine.
func (s *Source) start(ctx context.Context, address string) *upstreamPoller {
	u, rng := s.upstream(address), s.fork()
	ctx, u.cancel = context.WithCancel(ctx)
	go func() {
		defer close(u.done)
		u.run(ctx, rng)
	}()
	return u
}

// pollError is a poll that failed, in whole or in part: where there was no report that is "metrics",
// and where there was no listing "cache listing".
type pollError struct {
	address, part string
	err           error
}

func (e *pollError) Error() string {
	return fmt.Sprintf("upstream %s: %s: %s", e.address, e.part, settings.Cut(e.err.Error(), settings.MaxText))
}

func (e *pollError) Unwrap() error { return e.err }
