package balancer

import (
	"time"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/pool"
)

// Lease is one attempt's claim on an upstream, for the goroutine that claimed
// it. Done or Failed must be called once, on every path. Each method takes the instant of
// what it tells.
type Lease struct {
	// Choice is where the attempt goes, and why.
	*pool.Choice
	// ConnectTimeout bounds the dial.
	ConnectTimeout time.Duration
	// Fresh is set when the attempt must not use a pooled connection.
	Fresh bool

	b          *Balancer
	job        *dispatch.Job
	assignment *pool.Assignment // under b's mutex
}

// lease hands out what was granted.
func (b *Balancer) lease(g dispatch.Grant) (*Lease, error) {
	if g.Err != nil {
		return nil, g.Err
	}
	return &Lease{
		Choice: &g.Assignment.Choice, ConnectTimeout: g.ConnectTimeout, Fresh: g.Fresh,
		b: b, job: g.Job, assignment: g.Assignment,
	}, nil
}

// Answered notes that a response has begun; see pool.Assignment.
func (l *Lease) Answered(now time.Time, healthy bool, hint *pool.Hint) {
	now = l.b.lock(now)
	l.assignment.Answered(now, healthy, hint)
	l.b.dispatch.Stay(now, l.job)
	l.b.mu.Unlock()
	if l.b.hooks.Answered != nil {
		l.b.hooks.Answered(now, l.job, *l.Choice)
	}
}

// Told takes in the load that the upstream tells at the end of its response.
func (l *Lease) Told(now time.Time, hint *pool.Hint) {
	now = l.b.lock(now)
	defer l.b.mu.Unlock()
	l.assignment.Told(now, hint)
}

// Interim notes that something came before the response: the job stays. begun is set if
// it says that the upstream has begun the job.
func (l *Lease) Interim(now time.Time, begun bool) {
	now = l.b.lock(now)
	defer l.b.mu.Unlock()
	l.assignment.Hold()
	if begun {
		l.assignment.Begun()
	}
	l.b.dispatch.Stay(now, l.job)
}

// Move takes the lease to another upstream: a proxy that was told the fall-backs
// has gone on to it, because the upstream before brought no answer. An upstream
// that is not in the pool is not counted.
func (l *Lease) Move(now time.Time, address string) {
	l.Choice = &pool.Choice{Address: address}
	l.b.event(now, func(now time.Time) {
		if to := l.assignment.Move(now, address); to != nil {
			l.assignment, l.Choice = to, &to.Choice
		}
	})
}

// Done ends the lease, and the job.
func (l *Lease) Done(now time.Time, o pool.Outcome) {
	l.b.event(now, func(now time.Time) {
		l.assignment.Done(now, o)
		l.b.dispatch.Stay(now, l.job)
	})
}

// Failed ends the lease of an attempt that failed, and decides what follows.
func (l *Lease) Failed(now time.Time, f dispatch.Failure) (next dispatch.Next) {
	l.b.event(now, func(now time.Time) {
		if f.ConnectTimedOut {
			l.assignment.Unreached(now)
		}
		l.assignment.Done(now, f.Outcome)
		next = l.b.dispatch.Failed(now, l.job, f)
	})
	return next
}
