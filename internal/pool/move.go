package pool

import (
	"maps"
	"slices"
	"time"
)

// Move is a job that is to go to another upstream, where it is counted already. The caller must end the old assignment, or
// cancel the new one.
type Move struct {
	Job Waiter
	To  *Assignment
}

// Reconsider returns the jobs that are to leave a suspect whose reports fail. A suspect that only owes responses keeps its
// jobs: they can be long. may decides on each job. The call is cheap unless an upstream reported or became suspect.
func (p *Pool) Reconsider(now time.Time, may func(Waiter) bool) (moves []Move) {
	for _, address := range p.watch.Suspects(p.stuck) {
		if m := p.members[address]; m.suspicion.ReportsFail() {
			moves = p.evacuate(now, m, may, moves)
		}
	}
	return moves
}

// stuck reports whether the upstream is a suspect where jobs wait.
func (p *Pool) stuck(address string) bool {
	m := p.members[address]
	return m != nil && m.inSet && m.suspicion.Why() != "" && len(m.unanswered.jobs) > 0
}

// evacuate moves the jobs of a suspect to other upstreams, in the order of their claims.
func (p *Pool) evacuate(now time.Time, m *member, may func(Waiter) bool, moves []Move) []Move {
	c := &p.memory
	for _, number := range slices.Sorted(maps.Keys(m.unanswered.jobs)) {
		a := m.unanswered.jobs[number]
		if a.waiter == nil {
			continue
		}
		a.need.clone(&c.need)
		err := p.eligible(now, c, nil, a.waiter.Tried(), p.cfg.Rand)
		if err != nil || c.reason >= Suspect || c.count != (rules{suspicion: true, breakers: true}) {
			return moves
		}
		if !may(a.waiter) {
			continue
		}
		i := c.ask(p.cfg.Policy, &c.costs, p.cfg.Rand)
		entered, ok := c.members[i].breaker.Enter(now, false)
		if !ok {
			continue
		}
		moves = append(moves, Move{Job: a.waiter, To: p.assign(now, a.waiter, c, i, entered)})
		a.waiter = nil // it is not moved twice
	}
	return moves
}
