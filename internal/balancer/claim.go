package balancer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.org/pilotfish/internal/admission"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

// Request is what Claim is asked for.
type Request struct {
	pool.Request
	// Bytes is the size of the job's body, kept while it waits.
	Bytes int64
	// Wait bounds the wait for an eligible upstream; 0 means the default.
	Wait time.Duration
}

// waiter is the goroutine behind an entry of the queue.
type waiter struct {
	request  pool.Request
	since    time.Time
	priority selection.Priority
	granted  chan grant // buffered: the grant is made under the mutex
}

type grant struct {
	lease *Lease
	err   error
}

// Claim picks an upstream for a job and counts it there. When none is
// eligible the job waits its turn, until one is, ctx ends, the wait is over
// (admission.ErrWaited) or the queue overflows (admission.ErrFull). When the job has been to
// every upstream the error is pool.ErrAllTried, at once. The caller must end
// the lease with Done.
func (b *Balancer) Claim(ctx context.Context, r Request) (*Lease, error) {
	b.mu.Lock()
	now := time.Now()
	if b.queue.Ahead(r.Priority) == 0 || b.pool.AllTried(r.Tried) {
		g := b.try(now, r.Request)
		if g.err == nil || errors.Is(g.err, pool.ErrAllTried) {
			b.mu.Unlock()
			return b.claimed(g, now)
		}
	}
	if r.Wait == 0 {
		r.Wait = b.wait
	}
	e := &admission.Entry{Priority: r.Priority, Bytes: r.Bytes}
	w := &waiter{request: r.Request, since: now, priority: r.Priority, granted: make(chan grant, 1)}
	shed, err := b.queue.Push(e)
	if err != nil {
		n := b.queue.Len()
		b.mu.Unlock()
		return nil, fmt.Errorf("%w (%d)", admission.ErrFull, n)
	}
	b.waiters[e] = w
	for _, s := range shed {
		b.waiters[s].granted <- grant{err: admission.ErrDisplaced}
		delete(b.waiters, s)
	}
	served := b.serve(now)
	b.mu.Unlock()
	b.tell(served)
	select {
	case b.wake <- struct{}{}:
	default:
	}
	return b.await(ctx, e, w, r.Wait)
}

// await blocks until the waiter is granted a lease or gives up.
func (b *Balancer) await(ctx context.Context, e *admission.Entry, w *waiter, wait time.Duration) (*Lease, error) {
	if b.hooks.Queued != nil {
		b.hooks.Queued(w.priority)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	var g grant
	select {
	case g = <-w.granted:
	case <-ctx.Done():
		g = b.giveUp(e, w, ctx.Err())
	case <-timer.C:
		g = b.giveUp(e, w, admission.ErrWaited)
	}
	if b.hooks.Left != nil {
		b.hooks.Left(w.priority, time.Since(w.since))
	}
	if g.err != nil {
		return nil, g.err
	}
	return g.lease, nil
}

// try claims for one job; the mutex must be held.
func (b *Balancer) try(now time.Time, r pool.Request) grant {
	l, err := b.pool.Claim(now, r)
	if err != nil {
		return grant{err: err}
	}
	return grant{lease: b.lease(l)}
}

// giveUp takes a waiter out of the queue. A grant that came first is kept,
// unless the submitter is gone.
func (b *Balancer) giveUp(e *admission.Entry, w *waiter, why error) grant {
	b.mu.Lock()
	waiting := b.queue.Remove(e)
	delete(b.waiters, e)
	b.mu.Unlock()
	if waiting {
		return grant{err: why}
	}
	g := <-w.granted
	if g.err == nil && !errors.Is(why, admission.ErrWaited) {
		g.lease.Done(pool.NotStarted) // nothing was sent
		return grant{err: why}
	}
	return g
}

// served is a claim that was made for a waiting job.
type served struct {
	cache     selection.Cache
	panicking bool
	took      time.Duration
}

// serve offers the upstreams to the waiting jobs, in order. The mutex must be held.
func (b *Balancer) serve(now time.Time) []served {
	if b.queue.Len() == 0 {
		return nil
	}
	var done []served
	b.queue.Serve(func(e *admission.Entry) admission.Answer {
		w := b.waiters[e]
		started := time.Now()
		g := b.try(now, w.request)
		switch {
		case g.err == nil, errors.Is(g.err, pool.ErrAllTried):
		case errors.Is(g.err, pool.ErrNotAdmitted), len(w.request.Tried) > 0:
			return admission.PassedOver
		default:
			return admission.Refused
		}
		delete(b.waiters, e)
		w.granted <- g
		if g.err == nil {
			done = append(done, served{cache: g.lease.Cache, panicking: g.lease.Panic, took: time.Since(started)})
		}
		return admission.Served
	})
	return done
}

// tell runs the hooks for claims made by serve.
func (b *Balancer) tell(done []served) {
	if b.hooks.Picked == nil {
		return
	}
	for _, s := range done {
		b.hooks.Picked(s.cache, s.took, s.panicking)
	}
}

// claimed tells of a claim that was made without waiting.
func (b *Balancer) claimed(g grant, started time.Time) (*Lease, error) {
	if g.err == nil && b.hooks.Picked != nil {
		b.hooks.Picked(g.lease.Cache, time.Since(started), g.lease.Panic)
	}
	return g.lease, g.err
}
