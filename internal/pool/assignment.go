package pool

import (
	"time"

	"example.org/pilotfish/internal/health"
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
	// Expected is how long the job will probably hold a core there, in seconds, with the fetch of data that is not there. It is
	// learned from the jobs with its length key, from those of its project, or from all jobs. 0 is unknown.
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
	sent
	pool   *Pool
	member *member

	entry   health.Entry // at the breaker
	found   holding
	prefill *prompts.Prefill // of a prompt; nil is none
	moved   bool             // the job was elsewhere before: when it came here is not known
	idle    bool             // a core was free when it was claimed
	stage   stage
	run     run
}

// stage is how far an assignment has come. A stage is never followed by one before it.
type stage uint8

const (
	// waiting: no response has begun. The job is in the member's unanswered.
	waiting stage = iota
	// answered: a response has begun.
	answered
	// ended: the job is not counted at the upstream any more.
	ended
)

// run is when a job ran, as far as it is known.
type run struct {
	began   time.Time     // zero is not known
	fetched time.Duration // of the time since then, what its data cost that was not there
}

// Answered notes that a response has begun: the breaker learns of it now, not
// hours later at the end of a stream. healthy is false for a response that
// speaks against the upstream; hint is nil when there was none.
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
	outcome := Answered
	if !healthy {
		outcome = Failed
		a.member.breaker.CountFailure()
		if a.prefetch {
			a.missed(true)
		}
	}
	a.judge(now, outcome)
	if hint != nil {
		a.pool.hint(now, a.member, hint)
		a.pool.watch.Hint()
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
		a.member.breaker.Unreachable(now, a.entry)
	}
}

// ConnectionRefused notes that nothing listens at the upstream's address: it is down.
func (a *Assignment) ConnectionRefused(now time.Time) {
	if a.unseen() {
		a.member.breaker.Refused(now)
	}
}

// unseen reports whether the upstream has neither answered nor reported since the job was claimed.
func (a *Assignment) unseen() bool {
	return a.stage == waiting && a.member.suspicion.SilentSince(a.Claimed)
}

// Told takes in the load that the upstream tells at the end of its response.
func (a *Assignment) Told(now time.Time, hint *Hint) {
	if a.stage != ended {
		a.pool.hint(now, a.member, hint)
	}
}

// Found observes the share of its prompt that the job found cached.
func (a *Assignment) Found(share float64) {
	if a.stage != ended && a.prefill != nil {
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
	entered, _ := m.breaker.Enter(now, false)
	to := &Assignment{Choice: Choice{Address: address, Claimed: now}, pool: p, member: m, entry: entered, moved: true}
	a.need.clone(&to.need)
	to.count()
	return to
}

// count counts the job at its upstream; Done takes that back.
func (a *Assignment) count() {
	p, m := a.pool, a.member
	p.inFlight++
	m.load.claim(a.Claimed, a.priority)
	a.number = p.watch.Claimed(a.Claimed, &m.suspicion, p.cfg.Interval)
	m.unanswered.add(&a.sent)
	a.named.open++
	a.found = m.cached.holds(a.Claimed, &a.need, p.cfg.Interval)
	a.Cache = a.found.cache
	a.notePrefetch()
	m.cached.take(a.Claimed, a.data.parts, p.cfg.Interval)
	if a.prompt != nil {
		a.prefill = m.cached.prompts.Send(a.Claimed, p.prompts, a.prompt)
	}
}

// notePrefetch notes what a prefetch loads, and whether a job is the first to use it.
func (a *Assignment) notePrefetch() {
	last := a.project.prefetched
	switch {
	case a.prefetch && a.Cache == selection.NotCached && a.project.id != 0:
		a.project.prefetched = &prefetched{a.Claimed, a.Address}
	case !a.prefetch && last != nil && last.by == a.Address:
		a.Prefetched = a.Cache != selection.NotCached && a.Claimed.Sub(last.at) <= usedWithin
		a.project.prefetched = nil
	}
}

// missed forgets data that the upstream did not get: the parts that it did not have, or all.
func (a *Assignment) missed(all bool) {
	from := a.found.first
	if all {
		from = 0
	}
	if a.prefetch {
		a.project.prefetched = nil
	}
	for _, part := range a.data.parts[from:] {
		a.member.cached.assumed.Drop(part.Key)
	}
	if a.prefill != nil {
		a.prefill.Missed(all)
	}
}

// Done ends the attempt; calls after the first change nothing.
func (a *Assignment) Done(now time.Time, o Outcome) {
	if a.stage == ended {
		return
	}
	p, m, was := a.pool, a.member, a.stage
	a.stage = ended
	if o == NotStarted {
		m.load.shed = now.Add(p.cfg.Hold)
	}
	if was == waiting {
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
			a.responded(now)
		}
		a.judge(now, o)
		m.suspicion.Ended(a.number)
		m.unanswered.remove(&a.sent)
		if a.prefill != nil {
			a.prefill.Ended()
		}
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

// responded notes that a response has begun.
func (a *Assignment) responded(now time.Time) {
	a.pool.watch.Responded(now, &a.member.suspicion, a.number, a.pool.cfg.Interval)
}

// judge lets the breaker know the outcome of the job.
func (a *Assignment) judge(now time.Time, o Outcome) {
	switch b := &a.member.breaker; o {
	case Answered:
		b.Succeeded(now, a.entry)
	case Gone, Moved, NotStarted:
		b.Unjudged(a.entry)
	default:
		b.Failed(now, a.entry, evidence[o])
	}
}

// evidence is each outcome that speaks against an upstream, in words.
var evidence = [Outcomes]health.Failure{
	Failed:    {One: "a response of 500 or more", Many: "responses of 500 or more"},
	Refused:   {One: "a refused or lost connection", Many: "refused or lost connections"},
	NoAnswer:  {One: "a job without a response", Many: "jobs without a response"},
	TimedOut:  {One: "a first-byte timeout", Many: "first-byte timeouts"},
	Truncated: {One: "a truncated response", Many: "truncated responses"},
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
		a.run.fetched = now.Sub(a.run.began)
	case ok:
		missing := 1 - a.found.warm
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
		a.run.began = a.Claimed.Add(h.Waited)
		ran, cold = ran-h.Waited, !h.Cached
	case !a.idle:
		return 0, false
	default:
		a.run.began = a.Claimed
	}
	answers := &a.pool.answers
	if !cold {
		answers.learn(&a.project.answers, ran, lastAnswers)
		a.pool.compareTimes(a.member, &a.project.usual, ran)
		return 0, false
	}
	took = ran.Seconds() - answers.expected(a.project.answers, shrinkAnswers)
	a.run.fetched = max(0, seconds(took))
	return took, true
}
