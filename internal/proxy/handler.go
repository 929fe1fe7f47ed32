// Package proxy passes jobs on: it reads a job, claims an upstream for it,
// attempts, streams the answer back unmodified, and settles.
package proxy

import (
	"context"
	"net/http"
	"time"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/record"
)

// Proxy is the http.Handler that submitters talk to.
type Proxy struct {
	cfg       Config
	guard     Guard
	upstreams *upstreams
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

	x.begin()
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

// begin hands the job to the dispatcher.
func (x *exchange) begin() {
	f := &x.record.Facts
	x.job = x.p.cfg.Claimer.Begin(dispatch.Request{
		Project: f.Key, Priority: f.Priority, Arrived: x.record.Arrived, Bytes: int64(len(x.body.Bytes())),
		Queue: f.Queue, Evaluate: f.Evaluate, Stream: f.Stream,
	})
}

// withDeadline bounds everything before the answer begins by the job's
// deadline, if it has one. What is streamed has its own bounds, from the first byte.
func (x *exchange) withDeadline() (context.Context, context.CancelFunc) {
	if x.job.Deadline.IsZero() {
		return x.r.Context(), func() {}
	}
	return context.WithDeadlineCause(x.r.Context(), x.job.Deadline, record.ErrDeadline)
}

// attempts tries the job at one upstream after the other until an answer
// begins that is to be passed on.
func (x *exchange) attempts(ctx context.Context) (*answer, error) {
	for {
		if err := x.claim(ctx); err != nil {
			return x.exhausted(ctx, err)
		}
		a, failed := x.attempt()
		if failed == nil {
			return a, nil
		}
		x.failure = failed
		if !failed.next.Again {
			x.record.RetryRefused = failed.next.OverBudget
			return x.exhausted(ctx, failed.err)
		}
		if err := pause(ctx, failed.next.Pause); err != nil {
			return x.exhausted(ctx, err)
		}
	}
}

// pause waits before the next attempt.
func pause(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
