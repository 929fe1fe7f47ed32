// Package balancer makes pool and dispatch safe for concurrent use. It adds one
// mutex, the clock, and a channel on which each queued job receives its grant.
// Hooks run after the mutex is released. Long work is done in steps, between which
// the mutex is released: lists of upstreams, new sets, grants of many jobs.
package balancer

import (
	"context"
	"crypto/rand"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

// Hooks are called after the mutex is released, from any goroutine. Each can be nil, except Withdraw if upstreams withdraw jobs.
type Hooks struct {
	// Queued is called when a job enters the queue, and Left when it leaves the queue.
	Queued func(p selection.Priority)
	Left   func(p selection.Priority, waited time.Duration)
	// Answered is called when a response begins, with its load hint or nil.
	Answered func(now time.Time, j *dispatch.Job, c pool.Choice, hint *pool.Hint)
	// Probe requests the load of upstreams before a job is claimed, and returns their loads in the same order; nil is a
	// request that failed. It blocks at most as long as timeout. project is the identifier of the job's project, or "".
	Probe func(ctx context.Context, addresses []string, project string, timeout time.Duration) []*pool.Hint
	// Withdraw requests that an upstream withdraw the attempt with that ID, and reports whether it does. It blocks.
	Withdraw func(address, id string) bool
	// PollNow is called for an upstream that should be polled at once.
	PollNow func(address string)
	// Joined and Gone are called when upstreams were added to or removed from the pool.
	Joined func(addresses []string)
	Gone   func(addresses []string)
}

// Balancer lets many goroutines share one dispatcher and its pool.
type Balancer struct {
	hooks Hooks
	name  string        // random; the start of the IDs of attempts
	wake  chan struct{} // wakes Run when a job is queued
	more  chan struct{} // wakes Run when queued jobs are left to be served
	ready atomic.Bool   // there are upstreams

	mu          sync.Mutex
	latest      time.Time // the time of the last event
	dispatch    *dispatch.Dispatcher
	pool        *pool.Pool // the dispatcher's pool
	waiting     map[*dispatch.Job]chan dispatch.Grant
	withdrawals []dispatch.Withdrawal // requests to send after the mutex is released
	open        Lease                 // sentinel of the ring of open leases: after is the oldest, before the latest
}

// New returns a balancer that owns d. Run must be running: without it, queued jobs
// are not served when an upstream becomes eligible only because time has passed.
func New(d *dispatch.Dispatcher, hooks Hooks) *Balancer {
	b := &Balancer{
		hooks:    hooks,
		name:     rand.Text() + "-",
		wake:     make(chan struct{}, 1),
		more:     make(chan struct{}, 1),
		dispatch: d,
		pool:     d.Pool(),
		waiting:  make(map[*dispatch.Job]chan dispatch.Grant),
	}
	b.ready.Store(b.pool.Len() > 0)
	b.open.before, b.open.after = &b.open, &b.open
	return b
}

// lock locks the mutex for an event at now, and returns the time of the event. The pool's time must not go
// back: if another goroutine read the clock later but got the mutex first, lock returns its time.
func (b *Balancer) lock(now time.Time) time.Time {
	b.mu.Lock()
	if now.Before(b.latest) {
		return b.latest
	}
	b.latest = now
	return now
}

// locked calls do with the mutex held, for what is no event for queued jobs.
func (b *Balancer) locked(now time.Time, do func(now time.Time)) {
	now = b.lock(now)
	defer b.mu.Unlock()
	do(now)
}

// event calls happen with the mutex held, and then serves the queued jobs.
func (b *Balancer) event(now time.Time, happen func(now time.Time)) {
	now = b.lock(now)
	defer b.unlock()
	happen(now)
	b.serve(now)
	// Withdraw the attempts of jobs that are moved to another upstream. The jobs' goroutines then end their leases and get the
	// new assignments from Claim. Without the mutex, a lease could end in between.
	for _, j := range b.dispatch.Reconsider(now) {
		if !j.Withdraw.Withdraw() {
			b.dispatch.CancelMove(now, j)
		}
	}
	b.withdrawals = append(b.withdrawals, b.dispatch.Withdrawals(now)...)
}

// unlock releases the mutex, and then requests the early reports that the pool needs. Callers defer
// it, so a panic leaves no locked mutex.
func (b *Balancer) unlock() {
	ask, asked := b.pool.TakePolls(), b.withdrawals
	b.withdrawals = nil
	b.mu.Unlock()
	for _, a := range asked {
		go b.withdraw(a)
	}
	if b.hooks.PollNow == nil {
		return
	}
	for _, address := range ask {
		b.hooks.PollNow(address)
	}
}

// withdrawTime is the time from the request to withdraw a job to its response, which says that it did not start. After that,
// the upstream that was claimed for the job is free for another.
const withdrawTime = time.Second

// withdraw has an upstream withdraw a waiting job. The response to the job itself says whether it was withdrawn, so the job
// is not sent twice even if the withdrawal request fails.
func (b *Balancer) withdraw(w dispatch.Withdrawal) {
	cancel := func() {
		b.event(time.Now(), func(now time.Time) { b.dispatch.CancelWithdrawal(now, w.Job) })
	}
	if !b.hooks.Withdraw(w.Address, b.attemptID(w.Number)) {
		cancel()
		return
	}
	time.AfterFunc(withdrawTime, cancel)
}

// attemptID returns the ID of an attempt. No other sidecar generates the same ID.
func (b *Balancer) attemptID(number uint64) string { return b.name + strconv.FormatUint(number, 36) }

// serve sends grants to some of the queued jobs, and wakes Run if there are more. The mutex must be held.
func (b *Balancer) serve(now time.Time) {
	grants, more := b.dispatch.ServeSome(now)
	for _, g := range grants {
		b.waiting[g.Job] <- g // does not block: the channel has capacity 1
		delete(b.waiting, g.Job)
	}
	if more {
		select {
		case b.more <- struct{}{}:
		default:
		}
	}
}

// Begin returns a new job.
func (b *Balancer) Begin(r dispatch.Request) *dispatch.Job {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.dispatch.Begin(r)
}

// recheck is the interval at which queued jobs are served without an event. The end of
// a breaker's open time or of a report's freshness is not an event.
const recheck = 50 * time.Millisecond

// Run serves queued jobs every recheck until ctx ends. It sleeps while the queue is
// empty.
func (b *Balancer) Run(ctx context.Context) {
	ticker := time.NewTicker(recheck)
	ticker.Stop()
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.wake:
			ticker.Reset(recheck)
		case <-b.more:
			b.event(time.Now(), func(time.Time) {})
		case <-ticker.C:
			idle := false
			b.event(time.Now(), func(time.Time) { idle = b.dispatch.Waiting() == 0 })
			if idle {
				ticker.Stop()
			}
		}
	}
}
