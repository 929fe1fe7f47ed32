package pool

import (
	"math"
	"slices"
	"time"

	"example.org/pilotfish/internal/breaker"
	"example.org/pilotfish/pkg/selection"
)

// Choice is where an attempt goes, and why. It does not change.
type Choice struct {
	// Address is the upstream's, and Claimed when the job was counted there.
	Address string
	Claimed time.Time
	// Cache is the project's cache status there.
	Cache selection.Cache
	// Cost is what the policy weighed, if it can say and Config.Explain asks.
	Cost selection.Cost
	// RunnerUp is the upstream that would have cost the least without this one, and
	// RunnerUpCost what it would have; "" where there is no Cost, or no other upstream.
	RunnerUp     string
	RunnerUpCost float64
	// Fetch is how long a fetch of the project's data was expected to take, in seconds.
	Fetch float64
	// Fallbacks are the upstreams to try when this one does not answer, the best
	// first, where Request asks for them.
	Fallbacks []string
	// Panic is set when the breakers were ignored.
	Panic bool
}

// Assignment is an open attempt: a job that is counted at an upstream. Its
// holder must call Done or Cancel once on every path, and before that Answered
// when a response begins.
type Assignment struct {
	Choice

	pool    *Pool
	member  *member
	project *projectState
	moved   bool   // the job was elsewhere before: when it came here is not known
	cold    bool   // it may cause a fetch
	idle    bool   // a core was free there
	listed  bool   // the last listing of the upstream named the project
	number  uint64 // of the claim
	entry   uint64 // in the member's ledger
	entered entrance

	answered bool
	done     bool

	// For second thoughts.
	waits         bool // it is one of the member's waiters
	begun         bool // the upstream has said that it has begun the job
	priority      selection.Priority
	waiter        Waiter // nil: the job cannot be moved
	before, after *Assignment
}

// Answered notes that a response has begun: the breaker learns of it now, not
// hours later at the end of a stream. healthy is false for a response that
// speaks against the upstream; hint is nil when there was none.
func (a *Assignment) Answered(now time.Time, healthy bool, hint *Hint) {
	if a.answered || a.done {
		return
	}
	a.answered = true
	a.member.ledger.end(a.entry)
	a.pool.answerBegan(now, a)
	a.member.waiters.remove(a)
	if healthy {
		a.member.tellsBegun = a.begun
	}
	verdict := breaker.Healthy
	if !healthy {
		verdict = breaker.Unhealthy
		a.member.failing.seen++
	}
	a.entered.tell(now, verdict)
	if hint != nil {
		a.member.hint(now, hint, &a.pool.cfg)
		a.pool.heard = true
		if hint.Known && a.listed {
			a.pool.found(a.member, hint.Cached)
		}
	}
	if !a.moved {
		a.member.latency.observe(now, now.Sub(a.Claimed).Seconds())
		a.learn(now, hint)
	}
}

// Unreached notes that the upstream took no connection in time. A job pays for that with
// the whole time-out, so the breaker opens at once, and later jobs do not try. An
// upstream that has answered or reported since the job was claimed is not gone: then
// this is a failure like others.
func (a *Assignment) Unreached(now time.Time) {
	if m := a.member; !a.answered && !a.done && !m.suspicion.answered.After(a.Claimed) && !m.polled.After(a.Claimed) {
		a.entered.tell(now, breaker.Unreachable)
	}
}

// Told takes in the load that the upstream tells at the end of its response.
func (a *Assignment) Told(now time.Time, hint *Hint) {
	if !a.done {
		a.member.hint(now, hint, &a.pool.cfg)
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
	entered, _ := m.enter(now)
	to := &Assignment{
		Choice: Choice{Address: address, Claimed: now, Cache: m.cache(a.project.id, now, &p.cfg)},
		pool:   p, member: m, project: a.project, entered: entered, moved: true,
	}
	to.count()
	return to
}

// count counts the job at its upstream; end takes that back.
func (a *Assignment) count() {
	p, m := a.pool, a.member
	p.inFlight++
	p.projects.begin(a.project)
	m.load.claim(a.Claimed)
	if m.load.inFlight == 1 && m.inSet {
		i, _ := slices.BinarySearchFunc(p.busy, m, byAddress)
		p.busy = slices.Insert(p.busy, i, m)
	}
	a.entry = m.ledger.claim()
	a.number = p.number
	p.owe(a.Claimed, m, a.number)
	m.waiters.add(a)
	if a.project.id != 0 && a.Cache == selection.NotCached {
		a.cold = true
		m.cold++
		m.assumed.put(a.project.id, a.Claimed)
	}
}

// Done ends the attempt; calls after the first change nothing.
func (a *Assignment) Done(now time.Time, o Outcome) {
	if a.done {
		return
	}
	if o == NotStarted {
		a.member.held = now.Add(a.pool.cfg.Hold)
	}
	// Without a response nothing shows that the fetch was ever begun, or that its
	// data is there still. A refusal for load leaves what another job fetched.
	if !a.answered && o != Gone && a.Cache != selection.Cached && (a.cold || o != NotStarted && o != Moved) {
		a.member.assumed.drop(a.project.id)
	}
	if !a.answered && (o == Answered || o == Failed || o == NotStarted) {
		a.pool.answerBegan(now, a)
	}
	switch o {
	case Gone, NotStarted, Moved: // neither speaks for or against its health
		a.end(now, breaker.Unknown)
	case Answered:
		a.end(now, breaker.Healthy)
	default:
		a.end(now, breaker.Unhealthy)
	}
}

// Cancel takes an assignment back that was never used: nothing was sent.
func (a *Assignment) Cancel(now time.Time) {
	if a.done {
		return
	}
	if a.cold {
		a.member.assumed.drop(a.project.id)
	}
	a.end(now, breaker.Unknown)
}

// end takes the counts back. The verdict is for the breaker, unless a response
// has told it one already.
func (a *Assignment) end(now time.Time, v breaker.Verdict) {
	a.done = true
	a.member.waiters.remove(a)
	if !a.answered {
		a.entered.tell(now, v)
	}
	m := a.member
	if !a.answered {
		m.ledger.end(a.entry)
		m.suspicion.letGo(a.number)
	}
	m.load.done(now)
	if m.load.inFlight < 0 {
		panic("BUG: pool: jobs in flight below zero at " + m.Address)
	}
	if a.cold {
		m.cold--
	}
	p := a.pool
	if m.load.inFlight == 0 && m.inSet {
		i, _ := slices.BinarySearchFunc(p.busy, m, byAddress)
		p.busy = slices.Delete(p.busy, i, i+1)
	}
	p.inFlight--
	p.projects.end(a.project)
	p.reap(m)
}

// learn draws from a response that began how long the fetch took.
func (a *Assignment) learn(now time.Time, h *Hint) {
	if a.project.id == 0 {
		return
	}
	took, ok := a.fetchTime(now, h)
	if !ok {
		return
	}
	p, m := a.pool, a.member
	expected := p.fetch(a.project)
	p.sizes.observe(a.project.size(), took, p.answers.expected(a.project.answers))
	if took <= 0 {
		return // such a response began no later than others do: a ratio of it means nothing
	}
	ratio := math.Min(math.Max(took/expected, 0.1), 10)
	p.fetches.observe(&a.project.fetches, seconds(took))
	m.fetchFactor = math.Min(math.Max(m.fetchFactor*math.Pow(ratio/m.fetchFactor, 0.05), 0.5), 3)
}

// fetchTime is what it cost a job to come where its project's data was not:
// how much longer its response took to begin than the project's responses do where
// the data is cached, less the wait for a core. That is more than the fetch,
// because what was computed from the data must be computed again as well. It is
// negative where the response began earlier than others do.
//
// The upstream's own word for the fetch is not used: it leaves out what is
// computed again, and with such short times fetches look so cheap that a pool
// that is behind stays behind (docs/experiments.md). Where the upstream does
// not tell the wait, only jobs that found a free core count.
func (a *Assignment) fetchTime(now time.Time, h *Hint) (took float64, ok bool) {
	ran, cold := now.Sub(a.Claimed), a.cold
	switch {
	case h != nil && h.Known && h.Waited >= 0 && h.Waited <= ran:
		ran, cold = ran-h.Waited, !h.Cached
	case !a.idle:
		return 0, false
	}
	answers := a.pool.answers
	if !cold {
		answers.observe(&a.project.answers, ran)
		return 0, false
	}
	return ran.Seconds() - answers.expected(a.project.answers), true
}
