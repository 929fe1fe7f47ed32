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
	"strings"
	"sync"
	"time"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
)

// Config is what a Source is made of. The hooks are called from several goroutines, but
// in order for one upstream. With Prometheus one goroutine reports for all upstreams, so
// that the hooks must not block there. All but Reported, Transport and Dial is required.
type Config struct {
	Settings
	// Rand spreads the polls over time. From now on only the source may use it.
	Rand *rand.Rand
	// Reported are upstreams, by address, that have reported to the source before this one.
	Reported []string
	// Report takes every report.
	Report func(address string, r pool.Report)
	// Listing takes every cache listing that comes without a report; at is when
	// it was asked for, so that it is at least that recent.
	Listing func(address string, at time.Time, cached pool.CacheSet)
	// Failed takes an error that names the upstream, for each poll that gave no report
	// though the upstream has reported before, and for each cache listing that could not
	// be read.
	Failed func(address string, err error)
	// Unreported takes the first kind of these errors if it says something about the
	// upstream, not about Prometheus.
	Unreported func(address string, why error)
	// Checked takes each health check of an upstream; why is nil if it passed.
	Checked func(address string, why error)
	// Silent takes the error of each poll of an upstream that has never reported. That is
	// no failure: many servers report nothing.
	Silent func(address string, why error)
	// Transport carries the requests. Nil is one that uses no proxy, keeps one
	// connection to each upstream and takes at most 64 KiB of headers.
	Transport http.RoundTripper
	// Dial connects to an upstream; nil dials TCP. It does not count where there is a Transport.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Source reports for a set of upstreams, with one goroutine for each. Its methods are safe for
// concurrent use.
type Source struct {
	cfg     Config
	metrics metrics
	client  client        // asks upstreams
	changed chan struct{} // holds one while Run has not seen set

	mu  sync.Mutex
	set []string
	all map[string]follower // by address
}

// follower is the goroutine of one upstream.
type follower struct {
	cancel context.CancelFunc
	done   chan struct{}
	early  chan struct{} // holds one while the upstream is to be asked early
}

// New returns a Source without upstreams. The settings must have been checked.
func New(c Config) *Source {
	return &Source{
		cfg: c, metrics: c.Names.read(new(settings.Faults)), client: newClient(&c, c.Dial), changed: make(chan struct{}, 1), all: map[string]follower{},
	}
}

// Follow replaces the set of upstreams to ask, given by address. It never blocks and may be
// called before Run. Those that stay are not disturbed; polls of those that leave stop within a moment.
func (s *Source) Follow(addresses []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set = slices.Clone(addresses)
	raise(s.changed)
}

func (s *Source) following() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.set
}

// Ask makes the next poll of an upstream come at once. It never blocks. An upstream
// that is not followed, is being asked already, or is asked of Prometheus, is left alone.
func (s *Source) Ask(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cfg.Prometheus == "" { // which knows nothing newer than its last scrape
		raise(s.all[address].early) // a nil channel takes nothing
	}
}

func raise(flag chan struct{}) {
	select {
	case flag <- struct{}{}:
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
		p, rng := newPrometheus(s), s.fork()
		wg.Go(func() {
			every(ctx, s.cfg.Interval, rng, nil, p.poll)
			p.server.http.CloseIdleConnections()
		})
	}
	for {
		select {
		case <-s.changed:
			s.adjust(ctx, s.following())
		case <-ctx.Done():
			s.adjust(ctx, nil)
			s.client.http.CloseIdleConnections()
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
	for address, one := range leaving {
		one.cancel()
		delete(s.all, address)
	}
	s.mu.Unlock()
	for _, one := range leaving {
		<-one.done
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, address := range set {
		if _, ok := s.all[address]; ok {
			continue
		}
		ctx, cancel := context.WithCancel(ctx)
		one, rng := follower{cancel, make(chan struct{}), make(chan struct{}, 1)}, s.fork()
		s.all[address] = one
		go func() {
			defer close(one.done)
			s.upstream(address).run(ctx, rng, one.early)
		}()
	}
}

// maxReason bounds what an error repeats of a response, in bytes.
const maxReason = 300

// pollError is a poll that failed, in whole or in part: where there was no report that is "metrics",
// and where there was no listing "cache listing".
type pollError struct {
	address, part string
	err           error
}

func (e *pollError) Error() string {
	reason := e.err.Error()
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "") + "…"
	}
	return fmt.Sprintf("upstream %s: %s: %s", e.address, e.part, reason)
}

func (e *pollError) Unwrap() error { return e.err }

// unlisted hands over why a cache listing could not be read, unless only because ctx ended.
func (c *Config) unlisted(ctx context.Context, address string, err error) {
	if ctx.Err() == nil {
		c.Failed(address, &pollError{address, "cache listing", err})
	}
}

// unreported hands over why a poll gave no report, unless only because ctx ended. The
// upstream may have reported before; the fault may be another's, Prometheus's.
func (c *Config) unreported(ctx context.Context, address string, err error, before, others bool) {
	if ctx.Err() != nil {
		return
	}
	err = &pollError{address, "metrics", err}
	if !before {
		c.Silent(address, err)
		return
	}
	c.Failed(address, err)
	if !others {
		c.Unreported(address, err)
	}
}
