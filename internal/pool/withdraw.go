package pool

import (
	"cmp"
	"slices"
	"time"
)

// If upstreams withdraw waiting jobs on request, waiting jobs are moved to idle upstreams. An upstream is idle if it
// has just reported a free core and no queue. A job is moved if its data is cached at the idle upstream, or if its
// remaining wait is longer than waitFetches times the fetch. Jobs are also moved away from an upstream that stops soon.
const (
	waitFetches = 0.5
	// mostlyCached is the minimum cached share of a job's data for which the fetch of the rest is ignored.
	mostlyCached = 0.9
	// recentReport is the age up to which a report shows that an upstream is idle now.
	recentReport = time.Second
	// withdrawPause is the pause after a search that found no job to move, because a search looks at all waiting jobs.
	withdrawPause = 50 * time.Millisecond
	// searchWork bounds the work of one search, about 2 ms. A waiting job costs sortWork for each idle upstream; a job
	// that is moved costs claimWork plus 1 for each upstream of the pool.
	searchWork, sortWork, claimWork = 1 << 17, 8, 64
)

// Withdrawals finds jobs to move from the queues of upstreams, based on the reports since the last call. The caller
// must request their withdrawal. If the upstream has started the job or does not respond, the caller cancels the new
// assignment.
func (p *Pool) Withdrawals(now time.Time, moves Moves) {
	if len(p.reported) == 0 || now.Before(p.nextSearch) {
		return
	}
	queued, work, done := queuedJobs{}, searchWork, 0
	for ; done < len(p.reported) && moves.n < movesAtOnce && work > 0; done++ {
		m := p.reported[done]
		m.inReported = false
		switch {
		case !m.inSet || m.figures.doubts.doubted || now.Sub(m.load.at) > recentReport:
		case m.load.stalled == 0:
			p.fillIdle(now, m, &queued, &moves, &work)
		case m.leavingReason(now) != Eligible && !p.countAccepting(now, false).allLeaving:
			p.evacuate(now, m, movesAtOnce, &moves)
		}
		if moves.n == movesAtOnce || work <= 0 {
			p.markReported(m) // the next search continues with this upstream
		}
	}
	p.reported = slices.Delete(p.reported, 0, done)
	if moves.n == 0 {
		p.nextSearch = now.Add(withdrawPause)
	}
}

// queuedJobs holds the jobs that wait for a core. A search fills it when it first needs them.
type queuedJobs struct {
	jobs  []queuedJob
	found bool
}

// queuedJob is a job that waits for a core, with its remaining wait and its gain from a move, in seconds.
type queuedJob struct {
	*sent
	from *member
	wait float64
	gain float64
}

// fillIdle moves jobs that wait elsewhere to the free cores of an idle upstream: jobs with the largest gain first, and
// among equal gains the latest claim first.
func (p *Pool) fillIdle(now time.Time, m *member, queued *queuedJobs, moves *Moves, work *int) {
	free := int(m.cores(&p.norms) - m.load.present(true))
	if free < 1 {
		return
	}
	if !queued.found {
		*queued = queuedJobs{p.queuedJobs(now), true}
	}
	var gaining []queuedJob
	for _, j := range queued.jobs {
		if !moves.May(j.waiter) {
			continue
		}
		found, _ := m.cached.lookUp(now, &j.need, p.cfg.Interval)
		fetch, missing := p.fetch(&j.need), 1-found.share
		if missing < 1-mostlyCached || j.wait > waitFetches*fetch {
			j.gain = j.wait - missing*fetch
			gaining = append(gaining, j)
		}
	}
	slices.SortFunc(gaining, func(a, b queuedJob) int {
		return cmp.Or(cmp.Compare(b.gain, a.gain), cmp.Compare(b.number, a.number))
	})
	*work -= sortWork * len(queued.jobs)
	only := NewAddressSet([]string{m.Address})
	for _, j := range gaining {
		if free == 0 || moves.n == movesAtOnce || *work <= 0 {
			break
		}
		*work -= claimWork + len(p.set)
		if p.canMove(now, j.sent, only, j.waiter.Tried()) && p.move(now, j.from, j.sent, moves) {
			free--
		}
	}
}

// queuedJobs returns the jobs that wait for a core and can be moved.
func (p *Pool) queuedJobs(now time.Time) (jobs []queuedJob) {
	for _, m := range p.set {
		wait := p.queueTime(now, m)
		if wait <= 0 {
			continue
		}
		for _, s := range m.unanswered.jobs {
			if s.waiter != nil {
				jobs = append(jobs, queuedJob{sent: s, from: m, wait: wait})
			}
		}
	}
	return jobs
}

// queueTime returns how long the last job in the queue of m will wait, in seconds; 0 without a fresh report of a queue.
func (p *Pool) queueTime(now time.Time, m *member) float64 {
	if m.load.stalled == 0 || len(m.unanswered.jobs) == 0 || !m.isFresh(now, p.cfg.Interval) {
		return 0
	}
	cores := m.cores(&p.norms)
	return wait(m.load.present(true)-m.load.blocked(true)-1, cores, cores*m.figures.pace(&p.norms))
}
