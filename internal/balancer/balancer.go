// Package balancer is the shell around pool and dispatch: one mutex, one instant
// for each event, and the channels on which waiting jobs hear their
// grants. Hooks run after the mutex is released.
package balancer

import (
	"context"
	"errors"
	"sync"
	"time"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

// Hooks are called after the mutex is released, from any goroutine. Each may be nil.
type Hooks struct {
	// Queued and Left follow a job that waits: Left is called once for each Queued.
	Queued func(p selection.Priority)
	Left   func(p selection.Priority, waited time.Duration)
	// Answered follows each response that begins, at now, with its load hint; nil is none.
	Answered func(now time.Time, j *dispatch.Job, c pool.Choice, hint *pool.Hint)
	// Ask is called for an upstream that should report at once.
	Ask func(address string)
	// Joined and Gone follow the membership.
	Joined func(addresses []string)
	Gone   func(addresses []string)
}

// Balancer lets many goroutines share one dispatcher and its pool.
type Balancer struct {
	hooks Hooks
	wake  chan struct{} // tells Run that jobs wait

	mu       sync.Mutex
	latest   time.Time // the instant of the last event
	dispatch *dispatch.Dispatcher
	pool     *pool.Pool // the dispatcher's
	waiting  map[*dispatch.Job]chan dispatch.Grant
	open     Lease // its after is the oldest open lease, its before the latest
}

// New returns a balancer that owns d from now on. Its Run must be running for
// waiting jobs to be served when only time has passed.
func New(d *dispatch.Dispatcher, hooks Hooks) *Balancer {
	b := &Balancer{
		hooks:    hooks,
		wake:     make(chan struct{}, 1),
		dispatch: d,
		pool:     d.Pool(),
		waiting:  make(map[*dispatch.Job]chan dispatch.Grant),
	}
	b.open.before, b.open.after = &b.open, &b.open
	return b
}

// lock takes the mutex for what happens at now, and returns the instant to go by. That is the
// last event's if now is before it: somebody who read the clock later had the mutex first, and
// the pool's time does not go back.
func (b *Balancer) lock(now time.Time) time.Time {
	b.mu.Lock()
	if now.Before(b.latest) {
		return b.latest
	}
	b.latest = now
	return now
}

// event lets something happen at now, and then serves the jobs that wait.
func (b *Balancer) event(now time.Time, happen func(now time.Time)) {
	now = b.lock(now)
	defer b.unlock()
	happen(now)
	b.serve(now)
	b.reconsider(now)
}

// reconsider withdraws the attempts of jobs that should go elsewhere. Their goroutines
// then end the leases, and claim the places that wait for them. The mutex must be held, so
// that no lease ends meanwhile.
func (b *Balancer) reconsider(now time.Time) {
	for _, j := range b.dispatch.Reconsider(now) {
		if !j.Withdraw.Withdraw() {
			b.dispatch.CancelMove(now, j)
		}
	}
}

// unlock releases the mutex, and then asks for the reports that the pool wants. All who hold the
// mutex release it after a panic, too: others go on.
func (b *Balancer) unlock() {
	ask := b.pool.Ask()
	b.mu.Unlock()
	if b.hooks.Ask == nil {
		return
	}
	for _, address := range ask {
		b.hooks.Ask(address)
	}
}

// serve tells the waiting jobs what they were granted. The mutex must be held.
func (b *Balancer) serve(now time.Time) {
	for _, g := range b.dispatch.Serve(now) {
		b.waiting[g.Job] <- g // has room for one
		delete(b.waiting, g.Job)
	}
}

// Begin takes in a new job.
func (b *Balancer) Begin(r dispatch.Request) *dispatch.Job {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.dispatch.Begin(r)
}

// Claim gets an upstream for a job's next attempt from now on, and counts the job there.
// While no upstream is eligible the job waits its turn. The errors are ctx's
// own; context.DeadlineExceeded when the job's deadline has passed meanwhile;
// dispatch.ErrWaited when the job has waited long enough; dispatch.ErrAtLimit when its
// project holds it up; dispatch.ErrFull or dispatch.ErrDisplaced when the queue has no
// place for it; and pool.ErrAllTried, at once, when the job has been to every upstream.
// The caller must end the lease, with Done or Failed.
func (b *Balancer) Claim(ctx context.Context, now time.Time, j *dispatch.Job) (*Lease, error) {
	now = b.lock(now)
	held := true
	defer func() {
		if held {
			b.unlock()
		}
	}()
	g, granted := b.dispatch.Arrive(now, j)
	if !granted {
		hear := make(chan dispatch.Grant, 1)
		b.waiting[j] = hear
		b.serve(now)
		held = false
		b.unlock()
		g = b.wait(ctx, now, j, hear)
		b.mu.Lock()
		held = true
	}
	return b.lease(&g), g.Err
}

// wait blocks until the job hears what it is granted, or is given up.
func (b *Balancer) wait(ctx context.Context, now time.Time, j *dispatch.Job, hear <-chan dispatch.Grant) dispatch.Grant {
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
	case g := <-hear:
		return g
	case <-ctx.Done():
		return b.giveUp(j, hear, ctx.Err())
	case <-timer.C:
		return b.giveUp(j, hear, why)
	}
}

// giveUp takes a waiting job out. A grant that came first is kept, unless the
// submitter is gone or the job's deadline has passed.
func (b *Balancer) giveUp(j *dispatch.Job, hear <-chan dispatch.Grant, why error) dispatch.Grant {
	keep := errors.Is(why, dispatch.ErrWaited)
	now, waited, why := b.takeOut(j, keep, why)
	if !waited {
		g := <-hear
		if g.Err != nil || keep {
			return g
		}
		b.event(now, func(now time.Time) {
			g.Assignment.Cancel(now)
			b.dispatch.CancelMove(now, j) // it may have been moved since
		})
	}
	return dispatch.Grant{Err: why}
}

// takeOut takes a job out of the queue, and reports whether it stood there. known asks why it has waited so long.
func (b *Balancer) takeOut(j *dispatch.Job, known bool, why error) (now time.Time, waited bool, _ error) {
	now = b.lock(time.Now())
	defer b.mu.Unlock()
	if known {
		why = b.dispatch.Waited(now, j)
	}
	delete(b.waiting, j)
	return now, b.dispatch.GiveUp(j), why
}

// recheck is how often waiting jobs are offered the upstreams when nothing
// happens: a breaker's open time or a report's freshness ends without an event.
const recheck = 50 * time.Millisecond

// Run serves waiting jobs as time passes, until ctx ends. It sleeps while
// nobody waits.
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
