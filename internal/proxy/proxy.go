// Package proxy passes jobs on. The files follow a job's way: serve, read, claim,
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
	header http.Header // likewise, but for the length that is expected at each place
}
