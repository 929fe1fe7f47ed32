package pool

import (
	"time"

	"example.org/pilotfish/internal/breaker"
	"example.org/pilotfish/pkg/selection"
)

// Choice is where an attempt goes, and why. It does not change.
type Choice struct {
	// Address is the upstream's.
	Address string
	// Cache is the project's cache status there.
	Cache selection.Cache
	// Cost is what the policy weighed, if it can say and Config.Explain asks.
	Cost selection.Cost
	// Panic is set when the breakers were ignored.
	Panic bool
}

// Assignment is an open attempt: a job that is counted at an upstream. Its
// holder must call Done once on every path, and before it Answered when an
// answer begins.
type Assignment struct {
	Choice

	pool    *Pool
	member  *member
	project uint64
	claimed time.Time
	cold    bool
	idle    bool // a core was free there

	tell       func(now time.Time, v breaker.Verdict)
	answered   bool
	done       bool
	prev, next *Assignment // in member.open
}

// Answered notes that an answer has begun: the breaker learns of it now, not
// hours later at the end of a stream. healthy is false for an answer that
// speaks against the upstream; hint is nil when there was none.
func (a *Assignment) Answered(now time.Time, healthy bool, hint *Hint) {
	if a.answered || a.done {
		return
	}
	a.answered = true
	a.judge(now, healthy)
	a.member.latency.observe(now, now.Sub(a.claimed).Seconds())
	a.pool.learn(now, a, hint)
}

// Done ends the attempt; calls after the first change nothing.
func (a *Assignment) Done(now time.Time, o Outcome) {
	if a.done {
		return
	}
	a.done = true
	if !a.answered {
		switch o {
		case Gone, NotStarted: // neither speaks for or against its health
			a.tell(now, breaker.Unknown)
		default:
			a.judge(now, o == Answered)
		}
	}
	m := a.member
	if o == NotStarted {
		m.held = now.Add(a.pool.cfg.Hold)
	}
	m.open.remove(a)
	m.inFlight--
	if a.cold {
		m.cold--
	}
	if m.inFlight < 0 {
		panic("BUG: pool: jobs in flight below zero at " + m.Address)
	}
	if m.reported && !a.claimed.After(m.report.At) {
		m.ended++
	} else if m.begun > 0 {
		m.begun--
	}
	if !a.answered && o != Gone && a.Cache != selection.Cached && (a.cold || o != NotStarted) {
		// Nothing shows that the fetch was ever begun, or that its data is there
		// still; a refusal for load leaves what another job fetched.
		m.assumed.drop(a.project)
	}
	m.ends = m.ends.add(end{claimed: a.claimed, at: now})
	a.pool.inFlight--
	a.pool.reap(m)
}

// judge tells the breaker.
func (a *Assignment) judge(now time.Time, healthy bool) {
	v := breaker.Unhealthy
	if healthy {
		v = breaker.Healthy
	}
	a.tell(now, v)
}

// assignments is a doubly linked list, so that one leaves it in constant time.
type assignments struct{ first, last *Assignment }

func (ls *assignments) add(a *Assignment) {
	a.prev = ls.last
	if ls.last != nil {
		ls.last.next = a
	} else {
		ls.first = a
	}
	ls.last = a
}

func (ls *assignments) remove(a *Assignment) {
	if a.prev != nil {
		a.prev.next = a.next
	} else {
		ls.first = a.next
	}
	if a.next != nil {
		a.next.prev = a.prev
	} else {
		ls.last = a.prev
	}
	a.prev, a.next = nil, nil
}
