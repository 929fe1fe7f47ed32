package pool

import (
	"time"

	"example.org/pilotfish/internal/breaker"
	"example.org/pilotfish/pkg/selection"
)

// Lease is one attempt's claim on an upstream. Its holder must call Done once
// on every path; Answered, when an answer begins, before it.
type Lease struct {
	pool    *Pool
	member  *member
	job     selection.Job
	claimed time.Time
	cold    bool
	idle    bool // a core was free there

	// Cache is the project's cache status there when the job was claimed.
	Cache selection.Cache
	// Cost is what the policy weighed, if it can say and Config.Explain asks.
	Cost selection.Cost
	// Panic is set when the breakers were ignored.
	Panic bool

	verdict    func(now time.Time, v breaker.Verdict)
	answered   bool
	done       bool
	prev, next *Lease // in member.open
}

// Upstream is where the attempt goes.
func (l *Lease) Upstream() Upstream { return l.member.Upstream }

// Answered notes that an answer has begun: the breaker learns of it now, not
// hours later at the end of a stream. healthy is false for an answer that
// speaks against the upstream; hint is nil when there was none.
func (l *Lease) Answered(now time.Time, healthy bool, hint *Hint) {
	if l.answered || l.done {
		return
	}
	l.answered = true
	l.settle(now, healthy)
	l.member.latency.observe(now, now.Sub(l.claimed).Seconds())
	l.pool.learn(now, l, hint)
}

// Done ends the lease; calls after the first change nothing.
func (l *Lease) Done(now time.Time, o Outcome) {
	if l.done {
		return
	}
	l.done = true
	if !l.answered {
		switch o {
		case Gone, NotStarted: // neither speaks for or against its health
			l.verdict(now, breaker.Unknown)
		default:
			l.settle(now, o == Answered)
		}
	}
	m := l.member
	if o == NotStarted {
		m.held = now.Add(l.pool.cfg.Hold)
	}
	m.open.remove(l)
	m.inFlight--
	if l.cold {
		m.cold--
	}
	if m.inFlight < 0 {
		panic("BUG: pool: jobs in flight below zero at " + m.Address)
	}
	if m.reported && !l.claimed.After(m.report.At) {
		m.ended++
	} else if m.begun > 0 {
		m.begun--
	}
	if !l.answered && o != Gone && l.Cache != selection.Cached && (l.cold || o != NotStarted) {
		// Nothing shows that the fetch was ever begun, or that its data is there
		// still; a refusal for load leaves what another job fetched.
		m.assumed.drop(l.job.Project)
	}
	m.ends = m.ends.add(end{claimed: l.claimed, at: now})
	l.pool.inFlight--
	l.pool.reap(m)
}

func (l *Lease) settle(now time.Time, healthy bool) {
	v := breaker.Unhealthy
	if healthy {
		v = breaker.Healthy
	}
	l.verdict(now, v)
}

// leases is a doubly linked list, so that a lease leaves it in constant time.
type leases struct{ first, last *Lease }

func (ls *leases) add(l *Lease) {
	l.prev = ls.last
	if ls.last != nil {
		ls.last.next = l
	} else {
		ls.first = l
	}
	ls.last = l
}

func (ls *leases) remove(l *Lease) {
	if l.prev != nil {
		l.prev.next = l.next
	} else {
		ls.first = l.next
	}
	if l.next != nil {
		l.next.prev = l.prev
	} else {
		ls.last = l.prev
	}
	l.prev, l.next = nil, nil
}
