// Package proxy passes jobs on. The files follow a job's way: serve, read, claim,
// attempt, pass, and fail where there is no response to pass on.
//
// Each attempt ends with a verdict:
//
//	pass  the submitter gets this response; no attempt follows
//	keep  the submitter gets this response if no later attempt brings a better one
//	lost  there is no response that the submitter could get
package proxy

import (
	"net/http"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/job"
	"example.org/pilotfish/internal/proxy/upstreamclient"
)

// Proxy is the http.Handler that submitters talk to.
type Proxy struct {
	cfg       Config
	guard     Guard
	upstreams *upstreamclient.Client
	open      openJobs
}

// New returns a Proxy. Close it when no job is left.
func New(cfg Config) (*Proxy, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	upstreams := upstreamclient.New(upstreamclient.Config{
		Dial: cfg.Dial, Idle: idleConns, IdleTimeout: idleConnTime, MaxHead: maxAnswerHead,
	})
	return &Proxy{cfg: cfg, guard: NewGuard(cfg.Hosts), upstreams: upstreams}, nil
}

// Close closes the connections to upstreams that no job uses.
func (p *Proxy) Close() { p.upstreams.Close() }

// exchange is one job on its way through the proxy, on the handler's
// goroutine. After read, only the book, the bytes counted, the request and its
// withdrawal change.
type exchange struct {
	p    *Proxy
	w    http.ResponseWriter
	r    *http.Request
	rc   http.ResponseController
	book job.Book

	// What read adds.
	paced   pacedBody
	counted int64 // of the heads of job and answers, in the budget
	body    *intake.Body

	target string      // sent by all attempts
	header http.Header // sent by all attempts; only the expected duration differs
	open   bool        // the job is among the open ones

	// The request of the attempt under way, what withdraws it, and the verdict that passes its response. They
	// are here because an attempt would otherwise allocate them.
	request    upstreamclient.Request
	withdrawal upstreamclient.Withdrawal
	passed     verdict
}
