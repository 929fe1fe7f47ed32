package pool

import (
	"maps"
	"slices"
	"time"
)

// Move is a decision to send a job to another upstream, where it is already counted. The caller must end the old
// assignment, or cancel the new one.
type Move struct {
	Job    Waiter
	From   string // address of the old upstream
	Number uint64 // number of the claim at the old upstream
	To     *Assignment
}

// movesAtOnce bounds the jobs that one call of Reconsider or Withdrawals moves, because other jobs wait for the lock
// during the call. The next call continues.
const movesAtOnce = 256

// Moves holds the callbacks and the state of one search for jobs to move. Each move is recorded before the search
// continues, so that no job is moved twice.
type Moves struct {
	// May reports whether a job can be moved.
	May func(Waiter) bool
	// Moved records a move.
	Moved func(Move)

	n int // jobs moved so far
}

// Reconsider moves up to most jobs away from suspects whose reports fail, and from upstreams whose health checks get no
// response. A suspect that still reports keeps its jobs: they may simply be long. The call is cheap unless a report or
// health check arrived or failed, or an upstream became suspect.
func (p *Pool) Reconsider(now time.Time, most int, moves Moves) {
	if most = min(most, movesAtOnce); most == 0 {
		return
	}
	for _, address := range p.watch.TakeSuspects(p.isStuck) {
		if m := p.members[address]; m.suspicion.ReportsFail() {
			p.evacuate(now, m, most, &moves)
		}
	}
	if moves.n == most {
		p.watch.Changed()
	}
}

// isStuck reports whether the upstream is suspect or hangs, and jobs wait there.
func (p *Pool) isStuck(address string) bool {
	m := p.members[address]
	return m != nil && m.inSet && (m.suspicion.Why() != "" || m.suspicion.Hangs()) && len(m.unanswered.jobs) > 0
}

// evacuate moves the jobs of an upstream to healthy upstreams, in the order of their claims, until the search has moved
// most jobs. It skips a job that no upstream would take now: because the job has tried all healthy ones, or because overload
// detection refuses its priority and project.
func (p *Pool) evacuate(now time.Time, m *member, most int, moves *Moves) {
	var openings [2]*Openings // for ordinary and for heavy jobs
	for _, number := range slices.Sorted(maps.Keys(m.unanswered.jobs)) {
		s := m.unanswered.jobs[number]
		if s.waiter == nil || !moves.May(s.waiter) {
			continue
		}
		if moves.n == most {
			return
		}
		o := &openings[0]
		if s.heavy {
			o = &openings[1]
		}
		if *o == nil {
			*o = p.healthyOpenings(now, s.heavy)
		}
		tried := s.waiter.Tried()
		if admitted, _ := (*o).trusts((*o).rank(s.project.id, s.priority), tried); !admitted {
			continue
		}
		if p.canMove(now, s, nil, tried) {
			p.move(now, m, s, moves)
		}
	}
}

// canMove reports whether a job could go to another healthy upstream that is not in tried and, if among is not nil, is
// in among. It stores the candidates in p.scratch.
func (p *Pool) canMove(now time.Time, s *sent, among, tried *AddressSet) bool {
	c := &p.scratch
	s.need.clone(&c.need)
	c.need.healthy = true
	return p.eligible(now, c, among, tried, p.cfg.Rand) == nil && c.rules.areUsual()
}

// move moves a job to one of the upstreams that canMove found, and reports whether that upstream's breaker let the job
// through.
func (p *Pool) move(now time.Time, from *member, s *sent, moves *Moves) bool {
	c := &p.scratch
	i := c.choose(p.cfg.Policy, &c.costs, p.cfg.Rand)
	entered, ok := c.members[i].breaker.Enter(now, false)
	if !ok {
		return false
	}
	moves.n++
	moves.Moved(Move{Job: s.waiter, From: from.Address, Number: s.number, To: p.assign(now, s.waiter, c, i, entered)})
	return true
}
