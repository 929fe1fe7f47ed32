package pool

import (
	"cmp"
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
	abandoned := func(m *member) bool { return m.suspicion.why != "" && m.suspicion.failed > 0 }
	if !slices.ContainsFunc(p.busy, abandoned) {
		return nil
	}
	for _, m := range slices.Clone(p.busy) { // a job that is moved makes another upstream busy
		if abandoned(m) {
			moves = p.evacuate(now, m, may, moves)
		}
	}
	return moves
}

// evacuate moves the jobs of a suspect to upstreams that are not, in the order of their claims.
func (p *Pool) evacuate(now time.Time, m *member, may func(Waiter) bool, moves []Move) []Move {
	inOrder := slices.SortedFunc(maps.Keys(m.waiting), func(a, b *waiting) int { return cmp.Compare(a.number, b.number) })
	for _, w := range inOrder {
		n := p.need(w.project, w.data, false)
		job := p.job(now, w.priority, n)
		c, err := p.eligible(now, &job, n, nil, w.job.Tried())
		if err != nil || c.reason >= Suspect || c.count != (rules{true, true}) {
			return moves
		}
		if !may(w.job) {
			continue
		}
		i, costs := p.pick(job, c.views)
		entered, ok := c.members[i].health.enter(now)
		if !ok {
			continue
		}
		delete(m.waiting, w) // it is not moved twice
		moves = append(moves, Move{Job: w.job, To: p.assign(now, w.job, job, n, c, i, costs, entered)})
	}
	return moves
}
