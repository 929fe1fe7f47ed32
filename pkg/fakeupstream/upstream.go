package fakeupstream

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"example.org/pilotfish/internal/ruleserver"
	"example.org/pilotfish/internal/ruleserver/executor"
)

// Upstream is a rule processing server on a loopback port.
type Upstream struct {
	// URL is where it listens, such as "http://127.0.0.1:41234".
	URL string

	server  *ruleserver.Server
	handler http.Handler // of the server
	web     *http.Server
	serving sync.WaitGroup
	journal *journal
	jobs    *switches // of all that is no report
	reports *switches

	running, stalled atomic.Pointer[byPriority] // nil for the truth

	mu       sync.Mutex
	listener net.Listener // nil while connections are refused
}

type byPriority struct{ high, low int }

// New starts an upstream that ends with the test.
func New(tb TB, o Options) *Upstream {
	tb.Helper()
	u, err := Start(o)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(u.Close)
	return u
}

// Start starts an upstream; close it when done.
func Start(o Options) (*Upstream, error) {
	if o.Feeds == nil {
		o.Feeds = everyProject{}
	}
	settings, err := o.settings()
	if err != nil {
		return nil, fmt.Errorf("fakeupstream: %w", err)
	}
	u := &Upstream{journal: newJournal(), jobs: newSwitches(), reports: newSwitches()}
	u.server, err = ruleserver.New(ruleserver.Config{Settings: settings, Feeds: o.Feeds, AdjustLoad: u.adjust})
	if err != nil {
		return nil, fmt.Errorf("fakeupstream: %w", err)
	}
	u.handler = u.server.Handler()
	u.web = &http.Server{Handler: u, ReadHeaderTimeout: time.Minute}
	if err := u.start(o.Cached); err != nil {
		u.server.Close()
		return nil, fmt.Errorf("fakeupstream: %w", err)
	}
	return u, nil
}

func (u *Upstream) start(cached []string) error {
	if err := u.server.Warm(cached...); err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if err := u.listen("127.0.0.1:0"); err != nil {
		return err
	}
	u.URL = "http://" + u.listener.Addr().String()
	return nil
}

// listen opens the socket. The lock is held.
func (u *Upstream) listen(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	u.listener = listener
	u.serving.Go(func() { _ = u.web.Serve(listener) }) // it ends when the listener is closed
	return nil
}

// Address is the host and port of URL, such as "127.0.0.1:41234".
func (u *Upstream) Address() string { return strings.TrimPrefix(u.URL, "http://") }

// Close breaks all connections, fails the jobs that run and ends the upstream.
func (u *Upstream) Close() {
	_ = u.web.Close()
	u.SetFault(Fault{})
	u.SetReportFault(Fault{})
	u.server.Close()
	u.serving.Wait()
}

// Drain makes the upstream unhealthy, and its answer to new jobs a 503 that lets
// them be retried elsewhere. It cannot be undone.
func (u *Upstream) Drain() { u.server.Drain() }

// Refuse closes the socket, so that connections are refused, or opens it again
// at the same address. Idle connections are closed; those that carry a job end
// with it.
func (u *Upstream) Refuse(refuse bool) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case refuse && u.listener != nil:
		err := u.listener.Close()
		u.listener = nil
		u.web.SetKeepAlivesEnabled(false)
		return err
	case !refuse && u.listener == nil:
		u.web.SetKeepAlivesEnabled(true)
		return u.listen(u.Address())
	}
	return nil
}

// SetFault makes jobs, prefetches and whatever else is sent meet a fault, in
// place of the one before. Reports and health checks do not.
func (u *Upstream) SetFault(f Fault) { u.jobs.set(f) }

// SetReportFault makes requests for metrics and for the cache listing meet a
// fault.
func (u *Upstream) SetReportFault(f Fault) { u.reports.set(f) }

// SetCached makes the cache hold the data of these projects and nothing else,
// the first one the oldest. Jobs for them find it.
func (u *Upstream) SetCached(projects ...string) error { return u.server.Warm(projects...) }

// SetStalled makes the upstream claim so many stalled joblets, in its metrics
// and load hints. Negative numbers tell the truth again.
func (u *Upstream) SetStalled(high, low int) { u.stalled.Store(claim(high, low)) }

// SetRunning does the same for the jobs that run.
func (u *Upstream) SetRunning(high, low int) { u.running.Store(claim(high, low)) }

func claim(high, low int) *byPriority {
	if high < 0 || low < 0 {
		return nil
	}
	return &byPriority{high, low}
}

func (u *Upstream) adjust(load *executor.Load) {
	if s := u.stalled.Load(); s != nil {
		load.Stalled[executor.High], load.Stalled[executor.Low] = s.high, s.low
	}
	if r := u.running.Load(); r != nil {
		load.Running[executor.High], load.Running[executor.Low] = r.high, r.low
	}
}

// Jobs gives what was sent so far, reports and health checks aside.
func (u *Upstream) Jobs() []Job {
	jobs, _ := u.journal.snapshot()
	return jobs
}

// Forget empties what Jobs gives.
func (u *Upstream) Forget() { u.journal.forget() }

// Await blocks until done holds for Jobs, or ctx ends. It spares tests from
// sleeping.
func (u *Upstream) Await(ctx context.Context, done func([]Job) bool) error {
	return u.journal.await(ctx, done)
}
