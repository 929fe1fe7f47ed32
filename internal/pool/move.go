package pool

import (
	"maps"
	"slices"
	"time"
)

// Move is a job that should go to another upstream, where it is counted already. Its
// old assignment must end, or the new one be cancelled.
type Move struct {
	Job Waiter
	To  *Assignment
}

// Reconsider returns the jobs that wait at a suspect whose reports fail, and should go
// elsewhere. Answers alone that an upstream owes may be those of long jobs. may decides on each job.
//
// It looks at the jobs only after an upstream became suspect or reported.
func (p *Pool) Reconsider(now time.Time, may func(Waiter) bool) (moves []Move) {
	if !p.heard {
		return nil
	}
	p.heard = false
	maps.DeleteFunc(p.suspects, func(m *member, _ struct{}) bool {
		return m.suspicion.why == "" || !m.inSet || len(m.unanswered) == 0
	})
	if len(p.suspects) == 0 { // as nearly always: collecting none allocates, and each job ends here
		return nil
	}
	for _, m := range slices.SortedFunc(maps.Keys(p.suspects), byAddress) {
		if m.suspicion.why != "" && m.suspicion.failed > 0 {
			moves = p.evacuate(now, m, may, moves)
		}
	}
	return moves
}

// evacuate moves the jobs of a suspect to upstreams that are not, in the order of their claims.
func (p *Pool) evacuate(now time.Time, m *member, may func(Waiter) bool, moves []Move) []Move {
	for _, number := range slices.Sorted(maps.Keys(m.unanswered)) {
		a := m.unanswered[number]
		if a.waiter == nil {
			continue
		}
		c, err := p.eligible(now, a.priority, &a.need, nil, a.waiter.Tried(), p.cfg.Rand)
		if err != nil || c.reason >= Suspect || c.count != (rules{suspicion: true, breakers: true}) {
			return moves
		}
		if !may(a.waiter) {
			continue
		}
		i, costs := p.pick(c, p.cfg.Rand)
		entered, ok := c.members[i].health.enter(now, false)
		if !ok {
			continue
		}
		moves = append(moves, Move{Job: a.waiter, To: p.assign(now, a.waiter, c, i, costs, entered)})
		a.waiter = nil // it is not moved twice
	}
	return moves
}
