// Package proxy forwards jobs to upstreams. The files follow the request path: serve,
// read, claim, attempt, pass, and fail if there is no response to forward.
//
// Each attempt ends with a verdict:
//
//	pass  the response is forwarded; no retry
//	keep  the response is kept, and forwarded if no later attempt gets a better one
//	lost  there is no response to forward
package proxy

import (
	"net/http"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/job"
	"example.org/pilotfish/internal/proxy/upstreamclient"
)

// Proxy is the http.Handler for submitters.
type Proxy struct {
	cfg       Config
	guard     Guard
	upstreams *upstreamclient.Client
	open      openJobs
}

// New returns a Proxy. Call Close after the last job has ended.
func New(cfg Config) (*Proxy, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	upstreams := upstreamclient.New(upstreamclient.Config{
		Dial: cfg.Dial, Idle: idleConns, IdleTimeout: idleConnTime, MaxHead: maxResponseHead,
	})
	return &Proxy{cfg: cfg, guard: NewGuard(cfg.Hosts), upstreams: upstreams}, nil
}

// Close closes the idle connections to upstreams.
func (p *Proxy) Close() { p.upstreams.Close() }

// exchange is the state of one job in the proxy, used by the handler's goroutine.
// After read, only book, counted, open, request, withdrawal and passed change.
type exchange struct {
	p    *Proxy
	w    http.ResponseWriter
	r    *http.Request
	rc   http.ResponseController
	book job.Book

	// Set by read.
	paced   pacedBody
	counted int64 // bytes of request and response headers counted in the budget
	body    *intake.Body

	target string      // sent by all attempts
	header http.Header // sent by all attempts; only the expected duration differs
	open   bool        // the job is in openJobs

	// The request of the current attempt, its withdrawal, and the verdict that forwards its response. They
	// are fields to save an allocation per attempt.
	request    upstreamclient.Request
	withdrawal upstreamclient.Withdrawal
	passed     verdict
}

// removeOpen removes the job from the open jobs when its response begins. Only until then is a second request with
// its ID the sign of a loop: a submitter that reuses an ID sends its next job after the response.
func (x *exchange) removeOpen() {
	if x.open {
		x.open = false
		x.p.open.leave(x.book.Record.ID)
	}
}
