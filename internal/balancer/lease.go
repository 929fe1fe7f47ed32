package balancer

import (
	"cmp"
	"slices"
	"time"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/pool"
)

// Lease is one attempt's claim on an upstream. It is used by one goroutine, which
// must call Done or Failed once, on every path. The now of each method is the time of
// the event.
type Lease struct {
	// Choice is the upstream and the reasons for its choice.
	*pool.Choice
	// ConnectTimeout is the timeout of the dial.
	ConnectTimeout time.Duration
	// Fresh is set when the attempt must not use a pooled connection.
	Fresh bool

	b   *Balancer
	job *dispatch.Job

	// Guarded by b's mutex.
	assignment    *pool.Assignment
	before, after *Lease // neighbours in b's ring of open leases
}

// lease returns the lease of a grant, or nil if the grant is an error. The mutex must be held.
func (b *Balancer) lease(g *dispatch.Grant) *Lease {
	if g.Err != nil {
		return nil
	}
	l := &Lease{
		Choice: &g.Assignment.Choice, ConnectTimeout: g.ConnectTimeout, Fresh: g.Fresh,
		b: b, job: g.Job, assignment: g.Assignment, before: b.open.before, after: &b.open,
	}
	l.before.after, l.after.before = l, l
	return l
}

// end ends the lease. The mutex must be held.
func (l *Lease) end(now time.Time, o pool.Outcome) {
	l.assignment.Done(now, o)
	l.before.after, l.after.before = l.after, l.before
}

// Open is a job in flight at an upstream.
type Open struct {
	// ID, Session, Project and Priority have the same values as in the job's log line.
	ID       string `json:"id"`
	Session  string `json:"session,omitempty"`
	Project  string `json:"project,omitempty"`
	Priority string `json:"priority"`
	// Seconds is the time since the job's arrival, UpstreamSeconds the time since it was
	// sent to Upstream.
	Seconds         float64 `json:"seconds"`
	Upstream        string  `json:"upstream"`
	UpstreamSeconds float64 `json:"upstream_seconds"`
}

// Open returns the n jobs that have been at upstreams for longest. A job that Envoy has moved to
// another upstream is sorted by the time of its first upstream.
func (b *Balancer) Open(n int) []Open {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, open := time.Now(), make([]Open, 0, n)
	for l := b.open.after; l != &b.open && len(open) < n; l = l.after {
		r, a := &l.job.Request, l.assignment
		o := Open{
			ID: r.ID, Priority: r.Priority.String(), Seconds: now.Sub(r.Arrived).Seconds(),
			Upstream: a.Address, UpstreamSeconds: now.Sub(a.Claimed).Seconds(),
		}
		if r.Facts != nil {
			o.Session, o.Project = r.Facts.Session, r.Facts.Project
		}
		open = append(open, o)
	}
	return open
}

// Projects returns the n projects with the most jobs at upstreams.
func (b *Balancer) Projects(now time.Time, n int) []dispatch.ProjectLoad {
	loads := b.projects(now)
	slices.SortFunc(loads, func(a, b dispatch.ProjectLoad) int {
		return cmp.Or(cmp.Compare(b.InFlight, a.InFlight), cmp.Compare(a.Name, b.Name))
	})
	return loads[:min(n, len(loads))]
}

func (b *Balancer) projects(now time.Time) []dispatch.ProjectLoad {
	names := map[uint64]string{}
	b.mu.Lock()
	defer b.mu.Unlock()
	for l := b.open.after; l != &b.open; l = l.after {
		if r := &l.job.Request; r.Project != 0 {
			names[r.Project] = r.Name
		}
	}
	return b.dispatch.Projects(now, names)
}

// ID names the attempt in requests to withdraw it.
func (l *Lease) ID() string { return l.b.attemptID(l.assignment.Number()) }

// Answered records that the response has begun; see pool.Assignment.
func (l *Lease) Answered(now time.Time, healthy bool, hint *pool.Hint) {
	l.b.locked(now, func(at time.Time) {
		now = at
		l.assignment.Answered(now, healthy, hint)
		l.b.dispatch.CancelMove(now, l.job)
	})
	if l.b.hooks.Answered != nil {
		l.b.hooks.Answered(now, l.job, *l.Choice, hint)
	}
}

// Hinted records the load that the upstream reported in the trailer of its response.
func (l *Lease) Hinted(now time.Time, hint *pool.Hint) {
	l.b.locked(now, func(now time.Time) { l.assignment.Hinted(now, hint) })
}

// Found records the share of the job's data that was cached at the upstream.
func (l *Lease) Found(share float64) {
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	l.assignment.Found(share)
}

// Move moves the lease to another upstream. Envoy does the retry itself, at one of the
// fallbacks that it got, after the previous upstream failed. An upstream that is not in
// the pool is not counted.
func (l *Lease) Move(now time.Time, address string) {
	l.Choice = &pool.Choice{Address: address}
	l.b.event(now, func(now time.Time) {
		if to := l.assignment.Move(now, address); to != nil {
			l.assignment, l.Choice = to, &to.Choice
		}
	})
}

// Done ends the lease and the job.
func (l *Lease) Done(now time.Time, o pool.Outcome) {
	l.b.event(now, func(now time.Time) {
		l.end(now, o)
		l.b.dispatch.CancelMove(now, l.job)
	})
}

// Failed ends the lease of a failed attempt and decides whether the job is retried.
func (l *Lease) Failed(now time.Time, f dispatch.Failure) (next dispatch.Next) {
	l.b.event(now, func(now time.Time) {
		if f.ConnectTimedOut {
			l.assignment.Unreached(now)
		}
		if f.ConnectionRefused {
			l.assignment.ConnectionRefused(now)
		}
		outcome := f.Outcome
		if f.Blameless {
			outcome = pool.Gone
		}
		l.end(now, outcome)
		next = l.b.dispatch.Failed(now, l.job, f)
	})
	return next
}
