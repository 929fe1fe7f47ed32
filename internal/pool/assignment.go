package pool

import (
	"slices"
	"time"

	"example.org/pilotfish/internal/intake"
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
	// Expected is how long the project's jobs usually take once they run, in seconds; 0 is
	// not known.
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
	// Shadow is the upstream that the shadow would have taken, "" where there is none, and
	// ShadowCost what the policy weighed for it.
	Shadow     string
	ShadowCost float64
	// Panic is set when the breakers were ignored.
	Panic bool
}

// Assignment is an open attempt: a job that is counted at an upstream. Its
// holder must call Done or Cancel once on every path, and before that Answered
// when a response begins.
type Assignment struct {
	Choice

	need
	pool    *Pool
	member  *member
	one     [1]intake.Part // the parts, if there is one
	first   int            // parts that were there, from the first one on
	warm    float64        // share of the data that was there
	kept    time.Duration  // how long ago the last of them was used; 0 is not known
	lost    bool           // the next one was there and is taken to be gone
	reads   float64        // how long what was not there is read, if it is a text, in seconds
	alone   bool           // nothing else was to be read before it
	moved   bool           // the job was elsewhere before: when it came here is not known
	cold    bool           // it may cause a fetch
	idle    bool           // a core was free there
	owed    uint64         // its number in member.unanswered
	waiting waiting

	atBreaker entry
	answered  bool
	done      bool
	began     time.Time // when the job began to run; zero is not known
}

// Answered notes that a response has begun: the breaker learns of it now, not
// hours later at the end of a stream. healthy is false for a response that
// speaks against the upstream; hint is nil when there was none.
func (a *Assignment) Answered(now time.Time, healthy bool, hint *Hint) {
	if a.answered || a.done {
		return
	}
	a.answered = true
	a.member.unanswered.end(a.owed)
	if a.text {
		a.member.unread.answered(a.Claimed, a.reads)
	}
	a.pool.answerBegan(now, a.member, a.waiting.number)
	delete(a.member.waiting, &a.waiting)
	if healthy {
		a.record(now, Answered)
	} else {
		a.member.health.others.seen++
		a.record(now, Failed)
	}
	if hint != nil {
		a.member.hint(now, hint, &a.pool.cfg)
		a.pool.heard = true
	}
	if !a.moved {
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
	if m := a.member; !a.answered && !a.done && !m.suspicion.answered.After(a.Claimed) && !m.polled.After(a.Claimed) {
		m.health.unreachable(now, a.atBreaker, &a.pool.cfg)
	}
}

// Told takes in the load that the upstream tells at the end of its response.
func (a *Assignment) Told(now time.Time, hint *Hint) {
	if !a.done {
		a.member.hint(now, hint, &a.pool.cfg)
	}
}

// Found takes in the share of its text that the job found at the upstream.
func (a *Assignment) Found(share float64) {
	if a.done || !a.text || !(share >= 0 && share <= 1) {
		return
	}
	if !a.moved && a.Cache == selection.NotCached && a.Cost.Placement == 0 {
		a.pool.home.observe(max(share-a.warm, 0)/(1-a.warm), lately)
	}
	a.member.life.learn(share*a.bytes-a.warm*a.bytes/belief[selection.AssumedCached], a.parts[0].Bytes, a.kept, a.lost)
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
	entered, _ := m.health.enter(now)
	to := &Assignment{
		Choice: Choice{Address: address, Claimed: now},
		pool:   p, member: m, need: a.need, atBreaker: entered, moved: true,
	}
	to.count()
	return to
}

// count counts the job at its upstream; end takes that back.
func (a *Assignment) count() {
	p, m := a.pool, a.member
	p.inFlight++
	a.named.open++
	m.load.claim(a.Claimed)
	if m.load.inFlight == 1 && m.inSet {
		i, _ := slices.BinarySearchFunc(p.busy, m, byAddress)
		p.busy = slices.Insert(p.busy, i, m)
	}
	a.owed = m.unanswered.claim()
	a.waiting.number = p.number
	p.owe(a.Claimed, m, p.number)
	if a.waiting.job != nil {
		m.waiting[&a.waiting] = struct{}{}
	}
	a.Cache, a.warm, a.first = m.holds(&a.need, a.Claimed, &p.cfg)
	a.cold = len(a.parts) > 0 && a.Cache == selection.NotCached
	if a.text {
		a.kept, a.lost = m.ages(a.parts, a.first, a.Claimed)
	}
	m.take(a.parts, a.Claimed, &p.cfg)
	if a.text {
		wait := m.unread.left(a.Claimed)
		a.alone, a.reads = wait == 0, (1-a.warm)*p.fetch(&a.need)
		m.unread.claim(a.Claimed, a.reads)
		p.reads.observe(a.reads, lately)
		p.before.observe(wait/max(p.reads.mean, 1e-9), lately)
	}
}

// keep makes the parts the assignment's own, those of a chain aside: nobody changes them.
func (a *Assignment) keep() {
	a.states = nil
	switch {
	case len(a.parts) == 1:
		a.one[0] = a.parts[0]
		a.parts = a.one[:]
	case a.set:
		a.parts = slices.Clone(a.parts)
	}
	if a.set || a.text {
		a.waiting.data = &intake.Parts{Parts: a.parts, Set: a.set}
	}
}

// missed forgets the parts from that one on: they did not come to the upstream.
func (a *Assignment) missed(from int) {
	for _, part := range a.parts[from:] {
		a.member.assumed.drop(part.Key)
	}
}

// record tells the breaker how the job fared.
func (a *Assignment) record(now time.Time, o Outcome) {
	a.member.health.record(now, a.atBreaker, o, &a.pool.cfg)
}

// Done ends the attempt; calls after the first change nothing.
func (a *Assignment) Done(now time.Time, o Outcome) {
	if a.done {
		return
	}
	if o == NotStarted {
		a.member.health.shed = now.Add(a.pool.cfg.Hold)
	}
	// Without a response nothing shows that the fetch was ever begun, or that its
	// data is there still. A refusal for load leaves what another job fetched.
	switch {
	case a.answered || o == Gone:
	case o == NotStarted || o == Moved:
		a.missed(a.first)
	default:
		a.missed(0)
	}
	if !a.answered && (o == Answered || o == Failed || o == NotStarted) {
		a.pool.answerBegan(now, a.member, a.waiting.number)
	}
	if o == Answered && a.project.id != 0 && !a.began.IsZero() {
		a.pool.lengths.observe(&a.project.lengths, now.Sub(a.began))
	}
	a.end(now, o)
}

// Cancel takes an assignment back that was never used: nothing was sent.
func (a *Assignment) Cancel(now time.Time) {
	if a.done {
		return
	}
	a.missed(a.first)
	a.end(now, Gone)
}

// end takes the counts back. The breaker hears how the attempt ended, unless a response
// has told it already.
func (a *Assignment) end(now time.Time, o Outcome) {
	p, m := a.pool, a.member
	a.done = true
	delete(m.waiting, &a.waiting)
	if !a.answered {
		a.record(now, o)
		m.unanswered.end(a.owed)
		if a.text {
			m.unread.end(a.reads)
		}
		m.suspicion.letGo(a.waiting.number)
	}
	m.load.done(now)
	if m.load.inFlight < 0 {
		panic("BUG: pool: jobs in flight below zero at " + m.Address)
	}
	if m.load.inFlight == 0 && m.inSet {
		i, _ := slices.BinarySearchFunc(p.busy, m, byAddress)
		p.busy = slices.Delete(p.busy, i, i+1)
	}
	p.inFlight--
	a.named.open--
	p.forgetIfGone(now, m)
}

// learn draws from a response that began how long the fetch took.
func (a *Assignment) learn(now time.Time, h *Hint) {
	if a.project.id == 0 {
		return
	}
	took, ok := a.fetchTime(now, h)
	if a.text { // it begins to be answered once it was read
		took, ok = now.Sub(a.Claimed).Seconds(), a.alone && a.warm < 0.5
	}
	if ok {
		missing := 1 - a.warm
		if h != nil && h.Known {
			missing = 1
		}
		a.pool.model(&a.need).observe(a.total(), took/missing, a.pool.answers.expected(a.project.answers))
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
	ran, cold := now.Sub(a.Claimed), a.cold
	switch {
	case h != nil && h.Known && h.Waited >= 0 && h.Waited <= ran:
		a.began = a.Claimed.Add(h.Waited)
		ran, cold = ran-h.Waited, !h.Cached
	case !a.idle:
		return 0, false
	default:
		a.began = a.Claimed
	}
	answers := a.pool.answers
	if !cold {
		answers.observe(&a.project.answers, ran)
		a.pool.compareTimes(a.member, a.project, ran)
		return 0, false
	}
	return ran.Seconds() - answers.expected(a.project.answers), true
}
