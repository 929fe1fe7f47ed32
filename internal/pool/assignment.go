package pool

import (
	"time"

	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/internal/prompts"
	"example.org/pilotfish/pkg/selection"
)

// Choice is the upstream that an attempt goes to, and why. It does not change.
type Choice struct {
	// Address is that of the upstream. Claimed is when the job was counted there.
	Address string
	Claimed time.Time
	// Cache is whether the project's data is cached there.
	Cache selection.Cache
	Why
	// Expected is how long the job will probably hold a core there, in seconds, with the fetch of data that is not there. It is
	// learned from the jobs with its length key, from those of its project, or from all jobs. 0 is unknown.
	Expected float64
	// Fallbacks are the upstreams to try if this one does not respond, the best first, if the Request asks for them.
	Fallbacks []string
}

// Why is the reasons for choosing an upstream.
type Why struct {
	// Cost is its cost, if the policy computes costs.
	Cost selection.Cost
	// RunnerUp is the upstream with the next lowest cost, RunnerUpCost; "" if there are no costs, or no other upstream.
	RunnerUp     string
	RunnerUpCost float64
	// Shadow is the choice of the shadow policy, "" if there is none. ShadowCost is what it costs by the policy,
	// and ShadowCache is whether the project's data is cached there.
	Shadow      string
	ShadowCost  float64
	ShadowCache selection.Cache
	// Panic is set if the breakers were ignored.
	Panic bool
	// Heavy is set for a heavy job while there are upstreams for heavy jobs. Dedicated is set if it went to one.
	Heavy, Dedicated bool
	// Prefetched is set for the first job that finds its data cached because of a prefetch in the last minute.
	Prefetched bool
}

// Assignment is an open attempt: a job that is counted at an upstream. Its holder must call Answered when a response
// begins, and Done or Cancel once on every path.
type Assignment struct {
	Choice
	sent
	pool   *Pool
	member *member

	entry   health.Entry // at the breaker
	moved   bool         // a proxy sent the job here after another upstream: when it arrived is unknown
	idle    bool         // a core was free when it was claimed
	stage   stage
	found   holding
	prefill *prompts.Prefill // of a prompt; nil is none
	run     run
}

// stage is the state of an assignment. It only moves down this list.
type stage uint8

const (
	// waiting: no response has begun. The job is one of the member's unanswered.
	waiting stage = iota
	// answered: a response has begun.
	answered
	// ended: the job is no longer counted at the upstream.
	ended
)

// run is what is known of a job's run.
type run struct {
	began   time.Time     // zero is unknown
	fetched time.Duration // part of the run: fetching data that was not cached
}

// Answered records the start of a response. The breaker learns of it now and not at the end of a stream, hours later.
// healthy is false for a response that counts as a failure of the upstream. hint is nil if the response has none.
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

// Unreached records a connect timeout. Each costs a job the whole timeout, so the breaker opens at once. An upstream that
// has responded or reported since the claim is not down: then this is a failure like any other.
func (a *Assignment) Unreached(now time.Time) {
	if a.unseen() {
		a.member.breaker.Unreachable(now, a.entry)
	}
}

// ConnectionRefused records a refused connection: the upstream is down.
func (a *Assignment) ConnectionRefused(now time.Time) {
	if a.unseen() {
		a.member.breaker.Refused(now)
	}
}

// unseen reports whether the upstream has neither responded nor reported since the claim.
func (a *Assignment) unseen() bool {
	return a.stage == waiting && a.member.suspicion.SilentSince(a.Claimed)
}

// Hinted records the load in the trailer of a response.
func (a *Assignment) Hinted(now time.Time, hint *Hint) {
	if a.stage != ended {
		a.pool.hint(now, a.member, hint)
	}
}

// Found records the share of the job's prompt that was cached.
func (a *Assignment) Found(share float64) {
	if a.stage != ended && a.prefill != nil {
		a.prefill.Found(share, !a.moved && a.Cost.Placement == 0)
	}
}

// Move records that a proxy has retried the job at one of the fallbacks. It ends the attempt as one without a response, and
// counts the job at the other upstream. It returns nil if no upstream has that address.
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

// count counts the job at its upstream, until Done.
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

// notePrefetch remembers that a prefetch loads data, and finds out whether a job is the first to use it.
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

// missed drops the assumption that the data is cached: of the parts that were not cached before, or of all.
func (a *Assignment) missed(all bool) {
	from := int(a.found.first)
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

// Done ends the attempt. Only the first call has an effect.
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
		// Without a response nothing shows that the data was fetched, or that it is still cached. If the job was
		// refused for load, what another job fetched is.
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

// responded records that a response has begun, which clears the upstream of suspicion.
func (a *Assignment) responded(now time.Time) {
	a.pool.watch.Responded(now, &a.member.suspicion, a.number, a.pool.cfg.Interval)
}

// judge gives the outcome to the breaker.
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

// evidence describes the outcomes that are failures.
var evidence = [Outcomes]health.Failure{
	Failed:    {One: "a response of 500 or more", Many: "responses of 500 or more"},
	Refused:   {One: "a refused or lost connection", Many: "refused or lost connections"},
	NoAnswer:  {One: "a job without a response", Many: "jobs without a response"},
	TimedOut:  {One: "a first-byte timeout", Many: "first-byte timeouts"},
	Truncated: {One: "a truncated response", Many: "truncated responses"},
}

// Number is the number of the claim, which no other claim of the pool has.
func (a *Assignment) Number() uint64 { return a.number }

// Cancel ends an assignment that was never used. Another job may go to the upstream.
func (a *Assignment) Cancel(now time.Time) {
	a.Done(now, Moved)
	a.pool.note(a.member)
}

// learn learns the fetch time from a response that has begun.
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

// fetchTime is the time to first byte, less the wait for a core, and less the usual time to first byte of the project where
// its data is cached. It is negative if the response began earlier. It exceeds the fetch itself, because results computed
// from the data must be computed again. If the upstream does not report the wait, only jobs that found a free core count.
//
// The upstream's own measure of the fetch is not used. It does not include the results that must be computed again. With
// fetches underestimated in this way, an overloaded pool would stay overloaded.
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
