// Package fakeupstream is a rule processing server for go test: a real one, with
// executor, cache, metrics and cache listing, that records what it is sent and
// misbehaves on command.
//
//	up := fakeupstream.New(t, fakeupstream.Options{})
//	up.SetFault(fakeupstream.Fault{Status: 503, Times: 1}) // the first job fails
//	… send two jobs to up.URL …
//	jobs := up.Jobs() // headers and bodies of both
//
// Every project has the feed of the thesis's table 1 unless Options.Feeds says
// otherwise, so any job gets an answer. ExampleJob is one to send.
//
// All methods are safe for concurrent use and take effect at once: what hangs
// or stalls because of a fault goes on when the fault is replaced.
package fakeupstream

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"example.org/pilotfish/internal/ruleserver"
	"example.org/pilotfish/internal/ruleserver/example"
	"example.org/pilotfish/internal/ruleserver/executor"
)

// Upstream is a rule processing server on a loopback port.
type Upstream struct {
	// URL is where it listens, such as "http://127.0.0.1:41234".
	URL string

	server  *ruleserver.Server
	rules   http.Handler // of the server
	handler http.Handler // of what is recorded: the rules, or that of Options
	custom  bool         // it is that of Options
	metrics http.Handler // of the server, or that of Options
	serving sync.WaitGroup
	journal *journal
	jobs    *switches // for everything but reports
	reports *switches

	running, stalled atomic.Pointer[byPriority] // nil for the truth

	mu       sync.Mutex
	web      *http.Server
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
		o.Feeds = example.AnyFeeds()
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
	u.rules = u.server.Handler()
	u.handler, u.metrics = u.rules, u.rules
	if o.Metrics != nil {
		u.metrics = o.Metrics
	}
	if o.Handler != nil {
		u.handler, u.custom = o.Handler, true
	}
	if err := u.start(o); err != nil {
		u.server.Close()
		return nil, fmt.Errorf("fakeupstream: %w", err)
	}
	return u, nil
}

func (u *Upstream) start(o Options) error {
	if err := u.server.Warm(o.Cached...); err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.web = u.newWeb()
	if err := u.listen(cmp.Or(o.Listen, "127.0.0.1:0")); err != nil {
		return err
	}
	u.URL = "http://" + u.listener.Addr().String()
	return nil
}

func (u *Upstream) newWeb() *http.Server {
	return &http.Server{
		Handler:           http.HandlerFunc(u.serve),
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0), // broken connections are meant here
	}
}

// listen opens the socket. The lock is held.
func (u *Upstream) listen(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	u.listener = listener
	web := u.web
	u.serving.Go(func() { _ = web.Serve(listener) }) // it ends when the listener is closed
	return nil
}

func (u *Upstream) serve(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/healthz":
		u.rules.ServeHTTP(w, r)
	case "/metrics":
		u.reports.serve(w, r, u.metrics)
	case "/v1/cache/projects":
		u.reports.serve(w, r, u.rules)
	default:
		job := newJob(r)
		if !u.custom {
			job.readBody(r)
		}
		number := u.journal.add(job)
		defer func() { u.journal.end(number, r.Context().Err() != nil) }()
		u.jobs.serve(w, r, u.handler)
	}
}

// Address is the host and port of URL, such as "127.0.0.1:41234".
func (u *Upstream) Address() string { return strings.TrimPrefix(u.URL, "http://") }

// Close breaks all connections, fails the jobs that run and ends the upstream.
func (u *Upstream) Close() {
	u.Kill()
	u.SetFault(Fault{})
	u.SetReportFault(Fault{})
	u.server.Close()
	u.serving.Wait()
}

// Drain makes the upstream unhealthy. It answers new jobs with a 503 that lets
// them be retried elsewhere. Drain cannot be undone, and a Handler does not see it.
func (u *Upstream) Drain() { u.server.Drain() }

// Kill breaks all connections and refuses new ones, as if the process had died.
// Refuse(false) brings the upstream back, with what it has cached.
func (u *Upstream) Kill() {
	u.mu.Lock()
	defer u.mu.Unlock()
	_ = u.web.Close() // its socket with it
	u.web, u.listener = u.newWeb(), nil
}

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

// SetFault makes jobs, prefetches and whatever else is sent meet a fault, which
// replaces the one before. Reports and health checks do not meet it.
func (u *Upstream) SetFault(f Fault) { u.jobs.set(f) }

// SetReportFault makes requests for metrics and for the cache listing meet a
// fault.
func (u *Upstream) SetReportFault(f Fault) { u.reports.set(f) }

// SetCached makes the cache hold the data of these projects and nothing else,
// the first one the oldest. Jobs for them find it.
func (u *Upstream) SetCached(projects ...string) error { return u.server.Warm(projects...) }

// SetStalled makes the upstream report these numbers of stalled joblets, in its metrics
// and load hints. Negative numbers make it report the truth again.
func (u *Upstream) SetStalled(high, low int) { u.stalled.Store(reported(high, low)) }

// SetRunning does the same for the jobs that run.
func (u *Upstream) SetRunning(high, low int) { u.running.Store(reported(high, low)) }

func reported(high, low int) *byPriority {
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

// Jobs returns what was sent so far, but for reports and health checks.
func (u *Upstream) Jobs() []Job {
	jobs, _ := u.journal.snapshot()
	return jobs
}

// Forget empties what Jobs returns.
func (u *Upstream) Forget() { u.journal.forget() }

// Await blocks until done holds for Jobs, or ctx ends. With it, tests need not
// sleep.
func (u *Upstream) Await(ctx context.Context, done func([]Job) bool) error {
	return u.journal.await(ctx, done)
}
