package pool

import (
	"time"

	"example.org/pilotfish/internal/health"
)

// Answered records the start of a response. The breaker counts it now, because a stream can end hours later. healthy is
// false if the status counts as a failure of the upstream. hint is nil if the response has no load hint.
func (a *Assignment) Answered(now time.Time, healthy bool, hint *Hint) {
	if a.stage != waiting {
		return
	}
	a.stage = answered
	a.member.unanswered.remove(&a.sent)
	if a.prefill != nil {
		a.prefill.Answered()
	}
	a.responded(now)
	if healthy {
		a.updateBreaker(now, Answered)
	} else {
		a.stage = failing
		a.updateBreaker(now, Failed)
		if a.prefetch {
			a.dropAssumed(true)
		}
	}
	if hint != nil {
		a.pool.applyHint(now, a.member, hint)
		a.pool.watch.Changed()
	}
	if !a.moved && !a.prefetch {
		a.member.latency.observe(now, now.Sub(a.Claimed).Seconds())
		if healthy {
			a.learn(now, hint)
		}
	}
}

// Unreached records a connect timeout. It opens the breaker at once, because each further job would lose the whole
// timeout. If the upstream has responded or reported since the claim, it is not down, and the timeout is an ordinary
// failure.
func (a *Assignment) Unreached(now time.Time) {
	if a.silentSinceClaim() {
		a.member.breaker.Unreachable(now, a.entry)
	}
}

// ConnectionRefused records a refused connection: the upstream is down.
func (a *Assignment) ConnectionRefused(now time.Time) {
	if a.silentSinceClaim() {
		a.member.breaker.Refused(now)
	}
}

// silentSinceClaim reports whether the upstream has neither responded nor reported since the claim.
func (a *Assignment) silentSinceClaim() bool {
	return a.stage == waiting && a.member.suspicion.SilentSince(a.Claimed)
}

// Hinted records the load in the trailer of a response.
func (a *Assignment) Hinted(now time.Time, hint *Hint) {
	if a.stage != ended {
		a.pool.applyHint(now, a.member, hint)
	}
}

// Found records the share of the job's prompt that was cached.
func (a *Assignment) Found(share float64) {
	if a.stage != ended && a.prefill != nil {
		a.prefill.Found(share, !a.moved && a.Cost.Placement == 0)
	}
}

// Move records that a proxy has retried the job at one of the fallbacks. It ends this attempt with the outcome Refused,
// and counts the job at the other upstream. It returns nil if no upstream has that address.
func (a *Assignment) Move(now time.Time, address string) *Assignment {
	p := a.pool
	a.Done(now, Refused)
	m := p.members[address]
	if m == nil {
		return nil
	}
	entered, _ := m.breaker.Enter(now, false)
	to := &Assignment{Choice: Choice{Address: address, Claimed: now}, pool: p, member: m, entry: entered, moved: true}
	a.need.clone(&to.need)
	to.count()
	return to
}

// Done ends the attempt. Only the first call has an effect.
func (a *Assignment) Done(now time.Time, o Outcome) {
	if a.stage == ended {
		return
	}
	p, m, was := a.pool, a.member, a.stage
	a.stage = ended
	if o == NotStarted {
		m.load.shed = now.Add(p.cfg.RefusalPause)
	}
	if was == waiting {
		// Without a response, there is no evidence that the data was fetched or is still cached. If the job was refused
		// because of load or was withdrawn, data that was cached before is still cached.
		switch o {
		case Gone:
		case NotStarted, Moved:
			a.dropAssumed(false)
		default:
			a.dropAssumed(true)
		}
		if o == Answered || o == Failed || o == NotStarted {
			a.responded(now)
		}
		a.updateBreaker(now, o)
		m.suspicion.Ended(a.number)
		m.unanswered.remove(&a.sent)
		if a.prefill != nil {
			a.prefill.Ended()
		}
	} else if was == answered && o == Truncated {
		a.updateBreaker(now, o)
	}
	if o == Answered && was != failing {
		m.breaker.Ended(a.entry)
	}
	if o == Answered && a.project.id != 0 && !a.run.began.IsZero() {
		p.lengths.learn(&a.need, now.Sub(a.run.began)-a.run.fetched)
	}
	m.load.done(now)
	if m.load.inFlight < 0 {
		panic("BUG: pool: jobs in flight below zero at " + m.Address)
	}
	p.inFlight--
	a.named.open--
	p.forgetIfGone(now, m)
}

// responded records that a response has begun, which clears the upstream of suspicion.
func (a *Assignment) responded(now time.Time) {
	a.pool.watch.Responded(now, &a.member.suspicion, a.number, a.pool.cfg.Interval)
}

// Cancel ends an assignment that was never used. The caller should then serve waiting jobs.
func (a *Assignment) Cancel(now time.Time) {
	a.Done(now, Moved)
	a.pool.markReported(a.member)
}

// updateBreaker reports the outcome to the breaker.
func (a *Assignment) updateBreaker(now time.Time, o Outcome) {
	switch b := &a.member.breaker; o {
	case Answered:
		a.entry = b.Started(now, a.entry)
	case Gone, Moved, NotStarted:
		b.Inconclusive(a.entry)
	default:
		if o == Failed || o == Truncated {
			b.CountFailure()
		}
		b.Failed(now, a.entry, evidence[o])
	}
}

// evidence lists the outcomes that count as failures, with their descriptions in messages.
var evidence = [Outcomes]health.Failure{
	Failed:    {One: "a response of 500 or more", Many: "responses of 500 or more"},
	Refused:   {One: "a refused or lost connection", Many: "refused or lost connections"},
	NoAnswer:  {One: "a job without a response", Many: "jobs without a response"},
	TimedOut:  {One: "a first-byte timeout", Many: "first-byte timeouts"},
	Truncated: {One: "a truncated response", Many: "truncated responses", Late: true},
}

// Outcome is how an attempt ended.
type Outcome uint8

// The values of Outcome.
const (
	// Answered: a complete response with a status below 500 was passed on.
	Answered Outcome = iota
	// Failed: a complete response with a status of 500 or more, whether it was passed on or retried.
	Failed
	// NotStarted: a 503 response says that the upstream did not start the job.
	NotStarted
	// Refused: no connection was made, or it was closed before the whole job was sent.
	Refused
	// NoAnswer: the whole job was sent, and no byte of a response arrived.
	NoAnswer
	// TimedOut: no response began within the attempt's timeout.
	TimedOut
	// Truncated: the upstream aborted the response.
	Truncated
	// Gone: the submitter disconnected, or the job's own deadline passed while the response streamed.
	Gone
	// Moved: the job waited there, and the attempt was aborted to send the job to another upstream.
	Moved

	// Outcomes is the number of outcomes.
	Outcomes = int(Moved) + 1
)

// String returns the outcome's name in metrics, logs and traces.
func (o Outcome) String() string {
	return [Outcomes]string{"answered", "failed", "not_started", "refused", "no_response", "timed_out", "truncated", "gone", "moved"}[o]
}
