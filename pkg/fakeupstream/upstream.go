// Package fakeupstream is a rule processing server for go test: the reference server with
// executor, cache, metrics and cache listing, which records jobs and has
// fault injection.
//
//	up := fakeupstream.New(t, fakeupstream.Options{})
//	up.SetFault(fakeupstream.Fault{Status: 503, Times: 1}) // the first job fails
//	… send two jobs to up.URL …
//	jobs := up.Jobs() // headers and bodies of both
//
// Every project has the feed of the thesis's table 1, so that every job gets a result.
// ExampleJob is a job to send.
//
// All methods are safe for concurrent use and take effect immediately: requests that hang
// or stall because of a fault continue when the fault is replaced.
package fakeupstream

import (
	"cmp"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.org/pilotfish/internal/ruleserver"
	"example.org/pilotfish/internal/ruleserver/example"
	"example.org/pilotfish/internal/ruleserver/executor"
)

// Options configure an upstream. The zero value is a server with 4 cores,
// and an empty cache of 1 GiB.
type Options struct {
	Cores int // joblets that run at the same time; 4

	// Cached are the projects whose data is cached at the start, the oldest
	// first.
	Cached []string

	// Cost is the minimum duration of joblets, in the format of ruleserver's flag --cost,
	// such as "fetch=2s,shared=400ms,operators=800ms,output=100ms".
	Cost string

	// Handler serves jobs and all other requests instead of the rules, with the
	// same faults. It is called when a job's header has arrived; it must read the
	// body itself, and bodies are not recorded. Reports and health checks
	// are those of a server without jobs.
	Handler http.Handler

	// Metrics serves /metrics instead of the reference server, with the same
	// faults.
	Metrics http.Handler

	// Listen is the address to listen on. The default is a free port of 127.0.0.1.
	Listen string
}

// ExampleJob returns a job of high priority for project 12345.
func ExampleJob() string { return example.Job() }

// Upstream is a rule processing server on a loopback port.
type Upstream struct {
	// URL is its address, such as "http://127.0.0.1:41234".
	URL string

	recorder
	server  *ruleserver.Server
	rules   http.Handler // of the server
	options Options
	serving sync.WaitGroup
	faults  switches             // for everything but reports
	reports switches             // for metrics and listing
	load    atomic.Pointer[load] // nil: reports have the real load

	closing  sync.Mutex // guards what follows
	web      *http.Server
	listener net.Listener // nil while connections are refused
}

// load replaces the real load in reports.
type load struct{ running, stalled int }

// New starts an upstream that ends with the test.
func New(tb testing.TB, o Options) *Upstream {
	tb.Helper()
	u := &Upstream{options: o, recorder: recorder{changed: make(chan struct{})}, faults: newSwitches(), reports: newSwitches()}
	if err := u.start(); err != nil {
		tb.Fatalf("fakeupstream: %v", err)
	}
	tb.Cleanup(u.close)
	return u
}

func (u *Upstream) start() error {
	settings := ruleserver.Defaults()
	settings.Cores = cmp.Or(u.options.Cores, settings.Cores)
	var err error
	if settings.Cost, err = ruleserver.ParseCost(u.options.Cost); err != nil {
		return err
	}
	u.server, err = ruleserver.New(ruleserver.Config{Settings: settings, Feeds: example.AnyFeeds(), AdjustLoad: u.adjust})
	if err != nil {
		return err
	}
	u.rules = u.server.Handler()
	u.web = u.newWeb()
	if err := u.server.Warm(u.options.Cached...); err != nil {
		return err
	}
	if err := u.listen(cmp.Or(u.options.Listen, "127.0.0.1:0")); err != nil {
		return err
	}
	u.URL = "http://" + u.listener.Addr().String()
	return nil
}

func (u *Upstream) newWeb() *http.Server {
	return &http.Server{
		Handler:           http.HandlerFunc(u.serve),
		ReadHeaderTimeout: 2 * time.Minute,            // longer than http.DefaultTransport keeps a connection that it did not need
		ErrorLog:          log.New(io.Discard, "", 0), // tests break connections on purpose
	}
}

// listen opens the socket. The lock must be held, except in New.
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
	switch {
	case r.URL.Path == "/healthz":
		u.rules.ServeHTTP(w, r)
	case r.URL.Path == "/metrics" && u.options.Metrics != nil:
		u.reports.serve(w, r, u.options.Metrics)
	case r.URL.Path == "/metrics" || r.URL.Path == "/v1/cache/projects" || r.URL.Path == "/v1/load":
		u.reports.serve(w, r, u.rules)
	case u.options.Handler != nil:
		defer u.add(Job{Path: r.URL.Path, Header: r.Header.Clone()})()
		u.faults.serve(w, r, u.options.Handler)
	default:
		defer u.add(Job{Path: r.URL.Path, Header: r.Header.Clone(), Body: readBody(r)})()
		u.faults.serve(w, r, u.rules)
	}
}

// Address returns host and port of URL, such as "127.0.0.1:41234".
func (u *Upstream) Address() string { return strings.TrimPrefix(u.URL, "http://") }

// close closes all connections, fails the running jobs and stops the upstream.
func (u *Upstream) close() {
	u.Kill()
	u.SetFault(Fault{})
	u.SetReportFault(Fault{})
	u.server.Close()
	u.serving.Wait()
}

// Drain makes the upstream unhealthy. It responds to new jobs with a 503 that permits
// a retry elsewhere. Drain cannot be undone, and has no effect on a Handler.
func (u *Upstream) Drain() { u.server.Drain() }

// Kill closes all connections and refuses new ones, as if the process had died.
// Refuse(false) restarts the upstream with its present cache.
func (u *Upstream) Kill() {
	u.closing.Lock()
	defer u.closing.Unlock()
	_ = u.web.Close() // closes the listener, too
	u.web, u.listener = u.newWeb(), nil
}

// Refuse closes the socket, so that connections are refused, or opens it again
// at the same address. Idle connections are closed immediately, and others after their
// job.
func (u *Upstream) Refuse(refuse bool) error {
	u.closing.Lock()
	defer u.closing.Unlock()
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

// SetFault injects a fault into all requests except reports and health checks. It
// replaces the previous fault.
func (u *Upstream) SetFault(f Fault) { u.faults.set(f) }

// SetReportFault injects a fault into requests for metrics, for the cache listing and for the load (probes).
func (u *Upstream) SetReportFault(f Fault) { u.reports.set(f) }

// SetCached replaces the contents of the cache by the data of these projects, the oldest
// first.
func (u *Upstream) SetCached(projects ...string) error { return u.server.Warm(projects...) }

// SetLoad replaces the numbers of running jobs and stalled joblets in metrics and load
// hints, all of low priority. Negative numbers restore the real
// load.
func (u *Upstream) SetLoad(running, stalled int) {
	if min(running, stalled) < 0 {
		u.load.Store(nil)
		return
	}
	u.load.Store(&load{running, stalled})
}

func (u *Upstream) adjust(l *executor.Load) {
	if set := u.load.Load(); set != nil {
		l.Running, l.Stalled = [2]int{executor.Low: set.running}, [2]int{executor.Low: set.stalled}
	}
}
