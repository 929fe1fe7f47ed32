// Package proxy passes jobs on. The files follow a job's way: read, claim,
// attempt, pass, and fail where there is no response to pass on.
package proxy

import (
	"net/http"
	"time"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/proxy/upstreamclient"
	"example.org/pilotfish/internal/record"
)

// Proxy is the http.Handler that submitters talk to.
type Proxy struct {
	cfg       Config
	guard     Guard
	upstreams *upstreamclient.Client
}

// New returns a Proxy. Close it when no job is left.
func New(cfg Config) (*Proxy, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	upstreams, err := upstreamclient.New(upstreamclient.Config{
		Dial: cfg.Dial, Idle: cfg.IdleConns, IdleTimeout: cfg.IdleConnTimeout, MaxHead: cfg.MaxAnswerHeader,
	})
	if err != nil {
		return nil, err
	}
	return &Proxy{cfg: cfg, guard: NewGuard(cfg.Hosts), upstreams: upstreams}, nil
}

// Close closes the connections to upstreams that no job uses.
func (p *Proxy) Close() { p.upstreams.Close() }

// Idle is how many connections to each upstream no job uses, by its address.
func (p *Proxy) Idle() map[string]int { return p.upstreams.Idle() }

// ServeHTTP takes one job from its arrival to its end. The record is handed
// to Observe on every path, also after a panic.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := p.newExchange(w, r)
	defer x.close()
	if err := x.run(); err != nil {
		x.fail(err)
	}
}

// newExchange begins an exchange and its record.
func (p *Proxy) newExchange(w http.ResponseWriter, r *http.Request) *exchange {
	var job struct { // in one piece
		exchange
		record record.Job
		id     [1]string
	}
	job.record.ID = intake.ID(r.Header.Get("X-Request-Id"), r.Header.Get("Traceparent"))
	job.id[0] = job.record.ID
	job.record.Arrived, job.record.Outcome = time.Now(), intake.Broken
	job.exchange = exchange{
		p: p, w: w, r: r, id: job.id[:], rc: *http.NewResponseController(w), record: &job.record, expects: r.Header.Get("Expect") != "",
	}
	x := &job.exchange
	x.paced.r, x.paced.rc, x.paced.idle = r.Body, &x.rc, p.cfg.BodyIdle
	return x
}

// exchange is one job on its way through the proxy, on the handler's
// goroutine. Nothing of it changes after read, except the record.
type exchange struct {
	p      *Proxy
	w      http.ResponseWriter
	r      *http.Request
	id     []string // the job's, as the value of a header
	rc     http.ResponseController
	record *record.Job

	expects bool // the submitter waits to be told to go on

	// What read adds.
	paced   pacedBody
	counted int64 // of the head, in the budget
	body    *intake.Body

	withdrawal upstreamclient.Withdrawal // of the attempt under way

	target string        // what all attempts send alike
	header http.Header   // likewise
	quiet  bool          // the submitter is not told when the job begins
	job    *dispatch.Job // the attempts so far, and what may follow
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

// begun reports whether the head of an upstream's response was written.
func (x *exchange) begun() bool { return x.record.Completeness != intake.Absent }

// close gives the body back and hands the record over.
func (x *exchange) close() {
	if x.body != nil {
		x.body.Release()
	}
	x.p.cfg.Budget.Return(x.counted)
	x.record.Total = time.Since(x.record.Arrived)
	x.p.cfg.Observe(x.record)
}
