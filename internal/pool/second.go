package pool

import (
	"slices"
	"time"

	"example.org/pilotfish/pkg/selection"
)

// Waiter is a job that may leave an upstream at which it waits.
type Waiter interface {
	// Tried are the addresses that it may not go to, that of the upstream among them.
	Tried() []string
}

// Doubt says which jobs that wait at an upstream have second thoughts.
type Doubt struct {
	// Suspect is set if jobs leave an upstream that is suspect. Where it does not tell when
	// jobs begin, its reports must have failed: answers alone that it owes may be long jobs.
	Suspect bool
	// Late is how long a job waits before it may leave for a core that is free; 0 is for
	// ever.
	Late time.Duration
	// Blind is set if a late job may leave although its upstream does not tell when
	// jobs begin: it may have begun.
	Blind bool
}

// Reason is why a job was moved.
type Reason uint8

// The reasons, a closed set.
const (
	BySuspicion Reason = iota
	ByLateness

	// Reasons is how many there are.
	Reasons = int(ByLateness) + 1
)

// String returns the reason's word in metrics.
func (r Reason) String() string { return [Reasons]string{"suspect", "late"}[r] }

// Move is a job that should go to another upstream, where it is counted already. Its
// old assignment must end, or the new one be cancelled.
type Move struct {
	Job    Waiter
	To     *Assignment
	Reason Reason
}

// waiters are the assignments of one upstream whose jobs may be moved: no response
// has begun, and the upstream has not said that the job has. They are in the order of
// their claims.
type waiters struct{ first, last *Assignment }

func (w *waiters) add(a *Assignment) {
	if a.waiter == nil {
		return
	}
	a.waits, a.before = true, w.last
	if w.last == nil {
		w.first = a
	} else {
		w.last.after = a
	}
	w.last = a
}

func (w *waiters) remove(a *Assignment) {
	if !a.waits {
		return
	}
	if a.before == nil {
		w.first = a.after
	} else {
		a.before.after = a.after
	}
	if a.after == nil {
		w.last = a.before
	} else {
		a.after.before = a.before
	}
	a.waits, a.before, a.after = false, nil, nil
}

// all goes through the assignments. Each may be removed meanwhile.
func (w *waiters) all(yield func(*Assignment) bool) {
	for a := w.first; a != nil; {
		next := a.after
		if !yield(a) {
			return
		}
		a = next
	}
}

// Begun notes that the upstream has said that it has begun the job, which is not moved
// from now on.
func (a *Assignment) Begun() {
	if !a.done {
		a.begun, a.member.tellsBegun = true, true
		a.Hold()
	}
}

// Hold keeps the job from being moved: something of a response has come, if not its beginning.
func (a *Assignment) Hold() { a.member.waiters.remove(a) }

// justNow is how old a report may be for a core to count as free. Older ones draw the
// jobs of many sidecars to the same core.
const justNow = time.Second

// maxReconsidered bounds the late jobs that are looked at each time.
const maxReconsidered = 16

// Reconsider has second thoughts about the jobs that wait at upstreams, and returns those
// that should go elsewhere. may has the last word on each job; sure is whether it
// cannot have begun.
//
// It looks at the jobs only after something was heard of an upstream.
func (p *Pool) Reconsider(now time.Time, d Doubt, may func(w Waiter, sure bool) bool) (moves []Move) {
	if !p.heard {
		return nil
	}
	p.heard = false
	abandoned := func(m *member) bool {
		return m.suspicion.why != "" && (m.tellsBegun || m.suspicion.failed > 0)
	}
	if d.Suspect && slices.ContainsFunc(p.busy, abandoned) && !p.suspicionIgnored() {
		for _, m := range slices.Clone(p.busy) { // a job that is moved makes another upstream busy
			if abandoned(m) {
				moves = p.evacuate(now, m, may, moves)
			}
		}
	}
	late := func(m *member) bool {
		first := m.waiters.first
		return first != nil && now.Sub(first.Claimed) >= d.Late && m.suspicion.why == "" && (m.tellsBegun || d.Blind)
	}
	coster, ok := p.cfg.Policy.(selection.Coster)
	if !ok || d.Late <= 0 || !slices.ContainsFunc(p.busy, late) || !p.anyFree(now) {
		return moves
	}
	looked := 0
	for _, m := range slices.Clone(p.busy) {
		if !late(m) {
			continue
		}
		for a := range m.waiters.all {
			if looked == maxReconsidered {
				return moves
			}
			if now.Sub(a.Claimed) < d.Late || !m.tellsBegun && !a.maybeStalled(now) {
				continue
			}
			looked++
			if to := p.better(now, a, coster, may); to != nil {
				moves = append(moves, Move{Job: a.waiter, To: to, Reason: ByLateness})
			}
		}
	}
	return moves
}

// evacuate moves the jobs of a suspect to upstreams that are not.
func (p *Pool) evacuate(now time.Time, m *member, may func(w Waiter, sure bool) bool, moves []Move) []Move {
	for a := range m.waiters.all {
		job := p.job(now, a.priority, a.project)
		c, err := p.eligible(now, &job, a.project, nil, a.waiter.Tried())
		if err != nil || c.members[0].suspicion.why != "" || c.panicking {
			return moves
		}
		if !may(a.waiter, m.tellsBegun) {
			continue
		}
		i, costs := p.pick(job, c.views)
		if to := p.enter(now, a, job, c, i, costs); to != nil {
			moves = append(moves, Move{Job: a.waiter, To: to, Reason: BySuspicion})
		}
	}
	return moves
}

// enter moves the job of a to candidate i, unless its breaker says no.
func (p *Pool) enter(now time.Time, a *Assignment, job selection.Job, c *candidates, i int, costs []selection.Cost) *Assignment {
	entered, ok := c.members[i].enter(now)
	if !ok {
		return nil
	}
	a.member.waiters.remove(a) // it is not moved twice
	return p.assign(now, a.waiter, job, a.project, c, i, costs, entered)
}

// anyFree reports whether an upstream has just said that it has a core free.
func (p *Pool) anyFree(now time.Time) bool {
	for _, m := range p.set {
		if !m.ledger.doubted && m.load.fresh(now, justNow) && m.load.stalled == 0 && m.load.present(true)+1 <= m.cores(&p.cfg) {
			return true
		}
	}
	return false
}

// maybeStalled reports whether a report says that jobs wait which were claimed when this
// one was, or before.
func (a *Assignment) maybeStalled(now time.Time) bool {
	m := a.member
	return m.fresh(now, &a.pool.cfg) && m.load.at.After(a.Claimed) && m.load.stalled > a.behind()
}

// free reports whether an upstream has just said that it has a core free.
func free(v *selection.View) bool {
	return v.Age <= justNow.Seconds() && v.Stalled == 0 && v.Jobs+1 <= v.Cores
}

// behind is how many jobs of this sidecar came to the upstream after this one and may wait.
func (a *Assignment) behind() (jobs float64) {
	for b := a.after; b != nil; b = b.after {
		jobs++
	}
	return jobs
}

// better moves the job of a to an upstream where a core is free and it costs less than
// where it waits; nil if there is none.
func (p *Pool) better(now time.Time, a *Assignment, coster selection.Coster, may func(w Waiter, sure bool) bool) *Assignment {
	tried := slices.DeleteFunc(slices.Clone(a.waiter.Tried()), func(address string) bool { return address == a.Address })
	job := p.job(now, a.priority, a.project)
	job.Open-- // it does not count itself
	c, err := p.eligible(now, &job, a.project, nil, tried)
	if err != nil || c.panicking {
		return nil
	}
	from := slices.Index(c.members, a.member)
	if from < 0 {
		return nil
	}
	ahead := &c.views[from] // as it would be if those behind the job were not there
	mine := 1 + a.behind()
	ahead.Jobs = max(0, ahead.Jobs-mine)
	if a.member.load.at.After(a.Claimed) {
		ahead.Stalled = max(0, ahead.Stalled-mine)
	}
	costs := make([]selection.Cost, len(c.views))
	coster.Costs(job, c.views, costs)
	best := -1
	for i := range c.views {
		v := &c.views[i]
		if i == from || !free(v) || c.members[i].suspicion.why != "" {
			continue
		}
		if best < 0 || costs[i].Total < costs[best].Total {
			best = i
		}
	}
	if best < 0 || costs[best].Total >= costs[from].Total || !may(a.waiter, a.member.tellsBegun) {
		return nil
	}
	if !p.cfg.Explain {
		costs = nil
	}
	return p.enter(now, a, job, c, best, costs)
}
