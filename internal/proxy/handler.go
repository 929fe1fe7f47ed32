// Package proxy passes jobs on: it reads a job, claims an upstream for it,
// attempts, streams the answer back unmodified, and settles.
package proxy

import (
	"context"
	"net/http"
	"time"
)

// Proxy is the http.Handler that submitters talk to.
type Proxy struct {
	cfg       Config
	guard     Guard
	upstreams *upstreams
	retries   *retryBudget
}

// New returns a Proxy. Close it when no job is left.
func New(cfg Config) (*Proxy, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Proxy{
		cfg:       cfg,
		guard:     NewGuard(cfg.Hosts),
		upstreams: newUpstreams(&cfg),
		retries:   &retryBudget{share: cfg.RetryBudget},
	}, nil
}

// Close closes the connections to upstreams that no job uses.
func (p *Proxy) Close() { p.upstreams.close() }

// ServeHTTP takes one job from its arrival to its end. The record is handed
// to Observe on every path, and a lease still held, as after a panic, is ended.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := newExchange(p, w, r)
	defer x.end()
	if err := x.run(); err != nil {
		x.fail(err)
	}
}

// run is a job's path. An error before the answer has begun becomes an answer
// of pilotfish's own; one after it breaks the answer off.
func (x *exchange) run() error {
	if err := x.p.guard.check(x.r); err != nil {
		return err
	}
	if err := x.read(); err != nil {
		return err
	}
	defer x.body.Release()

	ctx, cancel := x.withDeadline()
	defer cancel()
	a, err := x.attempts(ctx)
	if err != nil {
		return err
	}
	if err := x.pass(a); err != nil {
		return err
	}
	if x.unread() { // the upstream answered before it had the whole job
		x.linger()
	}
	return nil
}

// withDeadline bounds everything before the answer begins by the sum of the
// job's timeouts, from its arrival, if it gives any; the configured bound
// stands for an evaluate timeout that is missing. What is streamed has its own
// bounds, from the first byte.
func (x *exchange) withDeadline() (context.Context, context.CancelFunc) {
	f := &x.record.Facts
	x.firstByte = f.Queue + f.Evaluate
	if f.Evaluate == 0 {
		x.firstByte = f.Queue + x.p.cfg.FirstByte
	}
	if f.Queue+f.Evaluate+f.Stream == 0 {
		return x.r.Context(), func() {}
	}
	x.deadline = x.record.Arrived.Add(x.firstByte + f.Stream)
	return context.WithDeadlineCause(x.r.Context(), x.deadline, errDeadline)
}

// attempts tries the job at one upstream after the other until an answer
// begins that is to be passed on.
func (x *exchange) attempts(ctx context.Context) (*answer, error) {
	x.p.retries.job(time.Now())
	backoff := newBackoff()
	for {
		if err := x.claim(ctx); err != nil {
			return x.exhausted(ctx, err)
		}
		a, failed := x.attempt()
		if failed == nil {
			return a, nil
		}
		x.failure = failed
		if !x.mayRetry(failed) {
			return x.exhausted(ctx, failed.err)
		}
		if err := x.pause(ctx, backoff); err != nil {
			return x.exhausted(ctx, err)
		}
	}
}
