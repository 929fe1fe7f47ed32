package pool

import (
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/prompts"
	"example.org/pilotfish/pkg/selection"
)

// Choice is where an attempt goes, and why. It does not change.
type Choice struct {
	// Address is the upstream's, and Claimed when the job was counted there.
	Address string
	Claimed time.Time
	// Cache is the project's cache status there.
	Cache selection.Cache
	Why
	// Expected is how long the job will hold a core there, in seconds: as long as its project's jobs
	// usually do, or all where the project is not known, and the fetch of what is not there. 0 is not known.
	Expected float64
	// Fallbacks are the upstreams to try when this one does not answer, the best
	// first, where Request asks for them.
	Fallbacks []string
}

// Why is what spoke for an upstream.
type Why struct {
	// Cost is what the policy weighed, if it can say.
	Cost selection.Cost
	// RunnerUp is the upstream that would have cost the least without this one, and
	// RunnerUpCost what it would have; "" where there is no Cost, or no other upstream.
	RunnerUp     string
	RunnerUpCost float64
	// Shadow is the upstream that the shadow would have taken, "" where there is none,
	// ShadowCost what the policy weighed for it, and ShadowCache the project's cache status there.
	Shadow      string
	ShadowCost  float64
	ShadowCache selection.Cache
	// Panic is set when the breakers were ignored.
	Panic bool
	// Heavy is set for a heavy job while there are upstreams for such, and Dedicated if it went to one.
	Heavy, Dedicated bool
	// Prefetched is set for the first job that finds its project's data because of a prefetch in the last minute.
	Prefetched bool
}

// Assignment is an open attempt: a job that is counted at an upstream. Its
// holder must call Done or Cancel once on every path, and before that Answered
// when a response begins.
type Assignment struct {
	Choice

	need
	pool     *Pool
	member   *member
	waiter   Waiter // nil: the job cannot be moved
	priority selection.Priority
	number   uint64           // of the claim
	one      [1]intake.Part   // the parts, if there is one
	first    int              // parts that were there, from the first one on
	warm     float64          // share of the data that was there
	prefill  *prompts.Prefill // of a prompt; nil is none
	moved    bool             // the job was elsewhere before: when it came here is not known
	idle     bool             // a core was free there

	atBreaker entry
	answered  bool
	done      bool
	began     time.Time     // when the job began to run; zero is not known
	fetched   time.Duration // of that time, what its data cost that was not there
}

// Answered notes that a response has begun: the breaker learns of it now, not
// hours later at the end of a stream. healthy is false for a response that
// speaks against the upstream; hint is nil when there was none.
func (a *Assignment) Answered(now time.Time, healthy bool, hint *Hint) {
	if a.answered || a.done {
		return
	}
	a.answered = true
	a.member.awaitNoMore(a)
	if a.prefill != nil {
		a.prefill.Answered()
	}
	a.pool.answerBegan(now, a.member, a.number)
	outcome := Answered
	if !healthy {
		outcome = Failed
		a.member.health.others.seen++
		if a.prefetch {
			a.missed(true)
		}
	}
	a.member.health.record(now, a.atBreaker, outcome, &a.pool.cfg)
	if hint != nil {
		a.pool.hint(now, a.member, hint)
		a.pool.heard = true
	}
	if !a.moved && !a.prefetch {
		a.member.latency.observe(now, now.Sub(a.Claimed).Seconds())
		if healthy {
			a.learn(now, hint)
		}
	}
}

// Unreached notes that the upstream took no connection in time. A job pays for that with
// the whole time-out, so the breaker opens at once, and later jobs do not try. An
// upstream that has answered or reported since the job was claimed is not gone: then
// this is a failure like others.
func (a *Assignment) Unreached(now time.Time) {
	if a.unseen() {
		a.member.health.unreachable(now, a.atBreaker, &a.pool.cfg)
	}
}

// ConnectionRefused notes that nothing listens at the upstream's address: it is down.
func (a *Assignment) ConnectionRefused(now time.Time) {
	if a.unseen() {
		a.member.health.refused(now, &a.pool.cfg)
	}
}

// unseen reports whether the upstream has neither answered nor reported since the job was claimed.
func (a *Assignment) unseen() bool {
	m := a.member
	return !a.answered && !a.done && !m.suspicion.answered.After(a.Claimed) && !m.polled.After(a.Claimed)
}

// Told takes in the load that the upstream tells at the end of its response.
func (a *Assignment) Told(now time.Time, hint *Hint) {
	if !a.done {
		a.pool.hint(now, a.member, hint)
	}
}

// Found observes the share of its prompt that the job found cached.
func (a *Assignment) Found(share float64) {
	if !a.done && a.prefill != nil {
		a.prefill.Found(share, !a.moved && a.Cost.Placement == 0)
	}
}

// Move notes that a proxy that was told the fall-backs has gone on to the one of
// that address. It ends the attempt as one that brought no response, and counts
// the job there. It returns nil when no such upstream is known.
func (a *Assignment) Move(now time.Time, address string) *Assignment {
	p := a.pool
	a.Done(now, Refused)
	m := p.members[address]
	if m == nil {
		return nil
	}
	entered, _ := m.health.enter(now, false)
	to := &Assignment{
		Choice: Choice{Address: address, Claimed: now},
		pool:   p, member: m, need: a.need, priority: a.priority, atBreaker: entered, moved: true,
	}
	to.count()
	return to
}

// count counts the job at its upstream; Done takes that back.
func (a *Assignment) count() {
	p, m := a.pool, a.member
	p.inFlight++
	p.number++
	a.number = p.number
	a.named.open++
	m.load.claim(a.Claimed, a.priority)
	m.await(a)
	p.owe(a.Claimed, m)
	a.Cache, a.warm, a.first = p.holds(a.Claimed, m, &a.need)
	a.notePrefetch()
	m.take(a.parts, a.Claimed, &p.cfg)
	if a.prompt != nil {
		a.prefill = m.prompts.Send(a.Claimed, p.prompts, a.prompt)
	}
}

// missed forgets data that the upstream did not get: the parts that it did not have, or all.
func (a *Assignment) missed(all bool) {
	from := a.first
	if all {
		from = 0
	}
	if a.prefetch {
		a.project.prefetched = nil
	}
	for _, part := range a.parts[from:] {
		a.member.assumed.Drop(part.Key)
	}
	if a.prefill != nil {
		a.prefill.Missed(all)
	}
}

// Done ends the attempt; calls after the first change nothing.
func (a *Assignment) Done(now time.Time, o Outcome) {
	if a.done {
		return
	}
	p, m := a.pool, a.member
	a.done = true
	if o == NotStarted {
		m.health.shed = now.Add(p.cfg.Hold)
	}
	if !a.answered {
		// Without a response nothing shows that the fetch was ever begun, or that its
		// data is there still. A refusal for load leaves what another job fetched.
		switch o {
		case Gone:
		case NotStarted, Moved:
			a.missed(false)
		default:
			a.missed(true)
		}
		if o == Answered || o == Failed || o == NotStarted {
			p.answerBegan(now, m, a.number)
		}
		m.health.record(now, a.atBreaker, o, &p.cfg)
		m.suspicion.letGo(a.number)
		m.awaitNoMore(a)
		if a.prefill != nil {
			a.prefill.Ended()
		}
	}
	if o == Answered && a.project.id != 0 && !a.began.IsZero() {
		p.lengths.learn(&a.project.lengths, now.Sub(a.began)-a.fetched, lastLengths)
	}
	m.load.done(now)
	if m.load.inFlight < 0 {
		panic("BUG: pool: jobs in flight below zero at " + m.Address)
	}
	p.inFlight--
	a.named.open--
	p.forgetIfGone(now, m)
}

// Cancel takes an assignment back that was never used: nothing was sent.
func (a *Assignment) Cancel(now time.Time) { a.Done(now, Moved) }

// learn draws from a response that began how long the fetch took.
func (a *Assignment) learn(now time.Time, h *Hint) {
	if a.project.id == 0 {
		return
	}
	took, ok := a.fetchTime(now, h)
	answer := a.pool.answers.expected(a.project.answers, shrinkAnswers)
	switch {
	case a.prefill != nil: // its response starts once it is read
		a.prefill.Learn(now, answer)
		a.fetched = now.Sub(a.began)
	case ok:
		missing := 1 - a.warm
		if h != nil && h.Known {
			missing = 1
		}
		a.pool.fetches.observe(a.total(), took/missing, answer)
	}
}

// fetchTime is what it cost a job to come where its project's data was not:
// how much longer its response took to begin than the project's responses do where
// the data is cached, less the wait for a core. That is more than the fetch,
// because what was computed from the data must be computed again as well. It is
// negative where the response began earlier than others do.
//
// The upstream's own word for the fetch is not used: it leaves out what is
// computed again, and with such short times fetches look so cheap that a pool
// that is behind stays behind. Where the upstream does
// not tell the wait, only jobs that found a free core count.
func (a *Assignment) fetchTime(now time.Time, h *Hint) (took float64, ok bool) {
	ran, cold := now.Sub(a.Claimed), a.Cache == selection.NotCached
	switch {
	case h != nil && h.Known && h.Waited >= 0 && h.Waited <= ran:
		a.began = a.Claimed.Add(h.Waited)
		ran, cold = ran-h.Waited, !h.Cached
	case !a.idle:
		return 0, false
	default:
		a.began = a.Claimed
	}
	answers := &a.pool.answers
	if !cold {
		answers.learn(&a.project.answers, ran, lastAnswers)
		a.pool.compareTimes(a.member, a.project, ran)
		return 0, false
	}
	took = ran.Seconds() - answers.expected(a.project.answers, shrinkAnswers)
	a.fetched = max(0, seconds(took))
	return took, true
}
