// Package balancer makes pool and dispatch safe for concurrent use. It adds one
// mutex, the clock, and a channel on which each queued job receives its grant.
// Hooks run after the mutex is released.
package balancer

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"sync"
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
	// Ask is called for an upstream that should be polled at once.
	Ask func(address string)
	// Joined and Gone are called when upstreams were added to or removed from the pool.
	Joined func(addresses []string)
	Gone   func(addresses []string)
}

// Balancer lets many goroutines share one dispatcher and its pool.
type Balancer struct {
	hooks Hooks
	name  string        // random; the start of the IDs of attempts
	wake  chan struct{} // wakes Run when a job is queued

	mu       sync.Mutex
	latest   time.Time // the time of the last event
	dispatch *dispatch.Dispatcher
	pool     *pool.Pool // the dispatcher's pool
	waiting  map[*dispatch.Job]chan dispatch.Grant
	asked    []dispatch.Withdrawal // requests to send once the mutex is released
	open     Lease                 // head of the ring of open leases: after is the oldest, before the latest
}

// New returns a balancer that owns d. Run must be running: without it, queued jobs
// are not served when an upstream becomes eligible only because time has passed.
func New(d *dispatch.Dispatcher, hooks Hooks) *Balancer {
	b := &Balancer{
		hooks:    hooks,
		name:     rand.Text() + "-",
		wake:     make(chan struct{}, 1),
		dispatch: d,
		pool:     d.Pool(),
		waiting:  make(map[*dispatch.Job]chan dispatch.Grant),
	}
	b.open.before, b.open.after = &b.open, &b.open
	return b
}

// lock locks the mutex for an event at now, and returns the time of the event. If another goroutine
// read the clock later but got the mutex first, that is the time of the last event: the pool's time
// must not go back.
func (b *Balancer) lock(now time.Time) time.Time {
	b.mu.Lock()
	if now.Before(b.latest) {
		return b.latest
	}
	b.latest = now
	return now
}

// event calls happen with the mutex held, and then serves the queued jobs.
func (b *Balancer) event(now time.Time, happen func(now time.Time)) {
	now = b.lock(now)
	defer b.unlock()
	happen(now)
	b.serve(now)
	b.reconsider(now)
	b.asked = append(b.asked, b.dispatch.Withdrawals(now)...)
}

// reconsider withdraws the attempts of jobs that are moved to another upstream. The jobs'
// goroutines then end their leases and get the new assignments from Claim. The mutex must be
// held, otherwise a lease could end in between.
func (b *Balancer) reconsider(now time.Time) {
	for _, j := range b.dispatch.Reconsider(now) {
		if !j.Withdraw.Withdraw() {
			b.dispatch.CancelMove(now, j)
		}
	}
}

// unlock releases the mutex, and then requests the early reports that the pool needs. Callers defer
// it, so a panic leaves no locked mutex.
func (b *Balancer) unlock() {
	ask, asked := b.pool.Poll(), b.asked
	b.asked = nil
	b.mu.Unlock()
	for _, a := range asked {
		go b.withdraw(a)
	}
	if b.hooks.Ask == nil {
		return
	}
	for _, address := range ask {
		b.hooks.Ask(address)
	}
}

// withdrawTime is the time from the request to withdraw a job to its response, which says that it did not start. After that,
// the upstream that was claimed for the job is free for another.
const withdrawTime = time.Second

// withdraw has an upstream withdraw a waiting job. The response to the job itself says whether it was withdrawn, so the job
// is not sent twice whatever becomes of the request.
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

// attemptID names an attempt. No other sidecar has the same.
func (b *Balancer) attemptID(number uint64) string { return b.name + strconv.FormatUint(number, 36) }

// serve sends grants to the queued jobs. The mutex must be held.
func (b *Balancer) serve(now time.Time) {
	for _, g := range b.dispatch.Serve(now) {
		b.waiting[g.Job] <- g // does not block: the channel has capacity 1
		delete(b.waiting, g.Job)
	}
}

// Begin returns a new job.
func (b *Balancer) Begin(r dispatch.Request) *dispatch.Job {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.dispatch.Begin(r)
}

// Claim claims an upstream for a job's next attempt. While no upstream is eligible, the
// job is queued and Claim blocks. The caller must end the lease with Done or Failed.
//
// Errors are: the error of ctx; context.DeadlineExceeded if the job's deadline passed;
// dispatch.ErrWaited if the queue timeout passed; dispatch.ErrAtLimit if the queue timeout
// passed because of the project's limit; dispatch.ErrFull or dispatch.ErrDisplaced if the
// queue is full; and pool.ErrAllTried, at once, if the job has tried every upstream.
func (b *Balancer) Claim(ctx context.Context, now time.Time, j *dispatch.Job) (*Lease, error) {
	if b.hooks.Probe != nil {
		now = b.probe(ctx, now, j)
	}
	now = b.lock(now)
	held := true
	defer func() {
		if held {
			b.unlock()
		}
	}()
	g, granted := b.dispatch.Arrive(now, j)
	if !granted {
		grants := make(chan dispatch.Grant, 1)
		b.waiting[j] = grants
		b.serve(now)
		held = false
		b.unlock()
		g = b.wait(ctx, now, j, grants)
		b.mu.Lock()
		held = true
	}
	return b.lease(&g), g.Err
}

// probe has the upstreams probed to which the job may go, if that pays, and returns the time after that. No lock is held
// while the requests run.
func (b *Balancer) probe(ctx context.Context, now time.Time, j *dispatch.Job) time.Time {
	addresses, timeout := b.probes(now, j)
	if len(addresses) == 0 {
		return now
	}
	project := j.Name
	if j.Data != nil {
		project = ""
	}
	loads := b.hooks.Probe(ctx, addresses, project, timeout)
	if ctx.Err() != nil { // that is no failure of the upstreams
		return time.Now()
	}
	b.event(time.Now(), func(at time.Time) {
		now = at
		for i, address := range addresses {
			b.dispatch.Probed(at, j, address, loads[i])
		}
	})
	return now
}

func (b *Balancer) probes(now time.Time, j *dispatch.Job) (addresses []string, timeout time.Duration) {
	now = b.lock(now)
	defer b.mu.Unlock()
	return b.dispatch.Probes(now, j)
}

// wait blocks until the job receives a grant or must be given up.
func (b *Balancer) wait(ctx context.Context, now time.Time, j *dispatch.Job, grants <-chan dispatch.Grant) dispatch.Grant {
	select {
	case b.wake <- struct{}{}:
	default:
	}
	if b.hooks.Queued != nil {
		b.hooks.Queued(j.Priority)
	}
	if b.hooks.Left != nil {
		defer func() { b.hooks.Left(j.Priority, time.Since(now)) }()
	}
	until, why := j.GiveUpAt(), dispatch.ErrWaited
	if !j.Deadline.IsZero() && j.Deadline.Before(until) {
		until, why = j.Deadline, context.DeadlineExceeded
	}
	timer := time.NewTimer(until.Sub(now))
	defer timer.Stop()
	select {
	case g := <-grants:
		return g
	case <-ctx.Done():
		return b.giveUp(j, grants, ctx.Err())
	case <-timer.C:
		return b.giveUp(j, grants, why)
	}
}

// giveUp removes a job from the queue. If the job has received a grant in between, the
// grant is used, unless the submitter disconnected or the job's deadline passed.
func (b *Balancer) giveUp(j *dispatch.Job, grants <-chan dispatch.Grant, why error) dispatch.Grant {
	keep := errors.Is(why, dispatch.ErrWaited)
	now, waited, why := b.takeOut(j, keep, why)
	if !waited {
		g := <-grants
		if g.Err != nil || keep {
			return g
		}
		b.event(now, func(now time.Time) {
			g.Assignment.Cancel(now)
			b.dispatch.CancelMove(now, j) // the job may have been moved since
		})
	}
	return dispatch.Grant{Err: why}
}

// takeOut removes a job from the queue and reports whether it was there. If known is true, it replaces why by the reason of the wait.
func (b *Balancer) takeOut(j *dispatch.Job, known bool, why error) (now time.Time, waited bool, _ error) {
	now = b.lock(time.Now())
	defer b.mu.Unlock()
	if known {
		why = b.dispatch.Waited(now, j)
	}
	delete(b.waiting, j)
	return now, b.dispatch.GiveUp(j), why
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
		case <-ticker.C:
			idle := false
			b.event(time.Now(), func(time.Time) { idle = b.dispatch.Waiting() == 0 })
			if idle {
				ticker.Stop()
			}
		}
	}
}
