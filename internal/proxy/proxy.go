// Package proxy passes jobs on. The files follow a job's way: proxy, read, claim,
// attempt, pass, and fail where there is no response to pass on.
package proxy

import (
	"net/http"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/job"
	"example.org/pilotfish/internal/proxy/upstreamclient"
)

// Proxy is the http.Handler that submitters talk to.
type Proxy struct {
	cfg       Config
	guard     Guard
	upstreams *upstreamclient.Client
	linger    time.Duration // lingerTime, but in tests
}

// New returns a Proxy. Close it when no job is left.
func New(cfg Config) (*Proxy, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	upstreams := upstreamclient.New(upstreamclient.Config{
		Dial: cfg.Dial, Idle: idleConns, IdleTimeout: idleConnTime, MaxHead: maxAnswerHead,
	})
	return &Proxy{cfg: cfg, guard: NewGuard(cfg.Hosts), upstreams: upstreams, linger: lingerTime}, nil
}

// Close closes the connections to upstreams that no job uses.
func (p *Proxy) Close() { p.upstreams.Close() }

// exchange is one job on its way through the proxy, on the handler's
// goroutine. Nothing of it changes after read, except the book.
type exchange struct {
	p    *Proxy
	w    http.ResponseWriter
	r    *http.Request
	rc   http.ResponseController
	book job.Book

	expects bool // the submitter waits to be told to go on

	// What read adds.
	paced   pacedBody
	counted int64 // of the heads of job and answers, in the budget
	body    *intake.Body

	under      attempt                   // the one under way
	withdrawal upstreamclient.Withdrawal // of it

	target string      // what all attempts send alike
	header http.Header // likewise
}

// ServeHTTP takes one job from its arrival to its end. The record is handed
// to the sinks on every path, also after a panic.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := p.newExchange(w, r)
	defer x.close()
	if err := x.run(); err != nil {
		x.fail(err)
	}
}

// newExchange begins an exchange and its book. What it needs of the stack is free again when the job waits.
func (p *Proxy) newExchange(w http.ResponseWriter, r *http.Request) *exchange {
	x := &exchange{p: p, w: w, r: r, rc: *http.NewResponseController(w), expects: r.Header.Get("Expect") != ""}
	x.book.Open(&p.cfg.Config, time.Now(), intake.Head{Method: r.Method, Path: r.URL.EscapedPath(), Header: r.Header}, r.RemoteAddr)
	x.paced.r, x.paced.rc = r.Body, &x.rc
	return x
}

// run is a job's way. An error before the response has begun becomes a response
// of pilotfish's own; one after it breaks the response off.
func (x *exchange) run() error {
	if err := x.p.guard.check(x.r); err != nil {
		return err
	}
	if err := x.read(); err != nil {
		return err
	}
	if err := x.attempts(); err != nil {
		return err
	}
	if x.unread() { // the upstream answered before it had the whole job
		x.linger()
	}
	return nil
}

// close gives the body back and closes the book.
func (x *exchange) close() {
	if x.body != nil {
		x.body.Release()
	}
	x.p.cfg.Budget.Return(x.counted)
	x.book.Close()
}
