package pool

import (
	"maps"
	"slices"
	"time"
)

// Move is a job that is to go to another upstream, where it is counted already. The caller must end the old assignment, or
// cancel the new one.
type Move struct {
	Job    Waiter
	From   string // address of the upstream where the job is
	Number uint64 // of the claim there
	To     *Assignment
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

// evacuate moves the jobs of an upstream to other healthy upstreams, in the order of their claims.
func (p *Pool) evacuate(now time.Time, m *member, may func(Waiter) bool, moves []Move) []Move {
	for _, number := range slices.Sorted(maps.Keys(m.unanswered.jobs)) {
		s := m.unanswered.jobs[number]
		if s.waiter == nil {
			continue
		}
		if !p.canMove(now, s, nil) {
			return moves
		}
		if to := p.move(now, s, may); to != nil {
			moves = append(moves, Move{Job: s.waiter, From: m.Address, Number: number, To: to})
			s.waiter = nil // it is not moved twice
		}
	}
	return moves
}

// canMove reports whether a job could go to another healthy upstream, one of those in among if that is not nil. The
// candidates are in p.memory.
func (p *Pool) canMove(now time.Time, s *sent, among *Places) bool {
	c := &p.memory
	s.need.clone(&c.need)
	err := p.eligible(now, c, among, s.waiter.Tried(), p.cfg.Rand)
	return err == nil && c.reason < Suspect && c.rules == rules{suspicion: true, breakers: true}
}

// move claims one of the upstreams that canMove found. It returns nil if the job may not move.
func (p *Pool) move(now time.Time, s *sent, may func(Waiter) bool) *Assignment {
	if !may(s.waiter) {
		return nil
	}
	c := &p.memory
	i := c.choose(p.cfg.Policy, &c.costs, p.cfg.Rand)
	entered, ok := c.members[i].breaker.Enter(now, false)
	if !ok {
		return nil
	}
	return p.assign(now, s.waiter, c, i, entered)
}
