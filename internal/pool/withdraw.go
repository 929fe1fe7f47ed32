package pool

import (
	"cmp"
	"slices"
	"time"
)

// If upstreams withdraw waiting jobs on request, idle upstreams can take these: a job that waits elsewhere is moved to an
// upstream that has just reported a free core and no queue, if its data is cached there or if it would wait there longer than
// waitFetches times the fetch. Jobs are also moved away from an upstream that stops soon. The withdrawal of a job is
// requested at most once: a refusal means that the job has started.
const (
	waitFetches = 0.5
	// mostlyCached is the minimum cached share of a job's data for which the fetch of the rest is ignored.
	mostlyCached = 0.9
	// recentReport is the age up to which a report shows that an upstream is idle now.
	recentReport = time.Second
	// withdrawPause is the pause after a search that found no job to move. A search looks at all waiting jobs.
	withdrawPause = 50 * time.Millisecond
)

// Withdrawals returns the jobs that their upstreams should withdraw if they have not started there, because of what was
// reported since the last call. may decides on each job. If the upstream refuses, the new assignment must be cancelled.
func (p *Pool) Withdrawals(now time.Time, may func(Waiter) bool) (moves []Move) {
	if len(p.reported) == 0 || now.Before(p.noneUntil) {
		return nil
	}
	for _, m := range p.reported {
		m.noted = false
		switch {
		case !m.inSet || m.figures.doubts.doubted || now.Sub(m.load.at) > recentReport:
		case m.load.stalled == 0:
			moves = p.fill(now, m, may, moves)
		case m.leaving(now) != Eligible && !p.takers(now, false).all:
			moves = p.evacuate(now, m, may, moves)
		}
	}
	p.reported = p.reported[:0]
	if len(moves) == 0 {
		p.noneUntil = now.Add(withdrawPause)
	}
	return moves
}

// queued is a job that waits for a core, and what it would gain elsewhere, in seconds.
type queued struct {
	*sent
	from string
	gain float64
}

// fill gives the free cores of an idle upstream to jobs that wait elsewhere: first those that gain most.
func (p *Pool) fill(now time.Time, m *member, may func(Waiter) bool, moves []Move) []Move {
	free := int(m.cores(&p.norms) - m.load.present(true))
	if free < 1 {
		return moves
	}
	only := NewPlaces([]string{m.Address})
	for _, s := range p.queued(now, m) {
		if free == 0 {
			break
		}
		if !p.canMove(now, s.sent, only) {
			continue
		}
		s.asked = true
		if to := p.move(now, s.sent, may); to != nil {
			moves = append(moves, Move{Job: s.waiter, From: s.from, Number: s.number, To: to})
			free--
		}
	}
	return moves
}

// queued returns the jobs that may wait for a core elsewhere and would gain at an idle upstream: the largest gain first, and
// of equal gains the latest claim first.
func (p *Pool) queued(now time.Time, idle *member) (jobs []queued) {
	for _, m := range p.set {
		wait := p.queueTime(now, m)
		if m == idle || wait <= 0 {
			continue
		}
		for _, s := range m.unanswered.jobs {
			if s.waiter == nil || s.asked {
				continue
			}
			fetch, missing := p.fetch(&s.need), 1-idle.cached.holds(now, &s.need, p.cfg.Interval).warm
			if missing < 1-mostlyCached || wait > waitFetches*fetch {
				jobs = append(jobs, queued{s, m.Address, wait - missing*fetch})
			}
		}
	}
	slices.SortFunc(jobs, func(a, b queued) int {
		return cmp.Or(cmp.Compare(b.gain, a.gain), cmp.Compare(b.number, a.number))
	})
	return jobs
}

// queueTime is how long the last job in the queue of m waits, in seconds; 0 without a fresh report of a queue.
func (p *Pool) queueTime(now time.Time, m *member) float64 {
	if m.load.stalled == 0 || len(m.unanswered.jobs) == 0 || !m.fresh(now, p.cfg.Interval) {
		return 0
	}
	cores := m.cores(&p.norms)
	return wait(m.load.present(true)-m.load.blocked(true)-1, cores, cores*m.figures.pace(&p.norms))
}
