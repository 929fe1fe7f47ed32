package sim

import (
	"slices"
	"time"

	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/internal/pool"
)

// poll polls one server for one sidecar, or for all sidecars together. It has the
// schedule of internal/report: a failed poll is followed by a few quick checks.
type poll struct {
	sides  []*sidecar
	server *server
	seen   seen

	due      time.Duration // start of the next poll; never while a poll is running
	check    bool          // the next poll is a check, with a shorter timeout
	again    bool          // poll again as soon as the running poll has ended
	failed   int           // consecutive failed polls
	reported bool          // a poll has succeeded
}

// seen is a server's counters at the last poll.
type seen struct {
	life int // the server's epoch to which the counters belong
	counters
}

const (
	pollTime  = 2 * time.Second // timeout of a poll
	checkTime = time.Second     // timeout of a check, and the time from a failed poll to the check
	maxChecks = 3               // maximum of consecutive checks
)

func (w *world) startPolls() {
	together := 1
	if w.cfg.Sidecars.Together {
		together = len(w.sidecars)
	}
	for sides := range slices.Chunk(w.sidecars, together) {
		polls := make([]poll, len(w.servers))
		for i, s := range w.servers {
			polls[i] = poll{sides: sides, server: s}
			polls[i].plan(w, time.Duration(w.polls.Int64N(int64(w.cfg.Sidecars.Interval))), false)
		}
		for _, side := range sides {
			side.polls = polls
		}
	}
}

// plan schedules the next poll, which replaces the one scheduled before.
func (p *poll) plan(w *world, at time.Duration, check bool) {
	if w.cfg.Sidecars.Unpolled {
		return
	}
	p.due, p.check = at, check
	w.events.Add(at, rankReport, func() { p.begin(w) })
}

// begin polls a server and schedules the next poll.
func (p *poll) begin(w *world) {
	if w.now != p.due || w.over() {
		return
	}
	interval, s := w.cfg.Sidecars.Interval, p.server
	next := w.now + interval + time.Duration((w.polls.Float64()*0.4-0.2)*float64(interval))
	if patience := s.failsAfter(w, p.check && p.reported); patience > 0 {
		p.due = never
		began := w.now
		w.events.Add(began+patience, rankReport, func() { p.fail(w, began, next) })
		return
	}
	p.reported, p.failed = true, 0
	p.plan(w, next, false)
	r := s.report(w, &p.seen)
	if lag := w.cfg.Sidecars.Lag; lag > 0 {
		w.events.Add(w.now+lag, rankReport, func() { p.reply(w, r) })
	} else {
		p.reply(w, r)
	}
}

// failsAfter returns the time after which a poll that starts now fails; 0 if the server responds.
func (s *server) failsAfter(w *world, check bool) time.Duration {
	switch {
	case s.up && !s.suffers(hung, w.now):
		return 0
	case check:
		return checkTime
	}
	return pollTime
}

// reply delivers a report to the sidecars.
func (p *poll) reply(w *world, r pool.Report) {
	for _, side := range p.sides {
		w.totals.Reports++
		side.pool.Report(w.time(w.now), p.server.address, r)
		side.serve(w)
	}
}

// fail handles a failed poll. normal is the start of the next regular poll.
func (p *poll) fail(w *world, began, normal time.Duration) {
	for _, side := range p.sides {
		side.pool.ReportFailed(w.time(w.now), p.server.address, health.ErrNoResponse)
		side.serve(w)
	}
	p.failed++
	switch {
	case p.again:
		p.plan(w, w.now, true)
	case p.reported && p.failed <= maxChecks:
		p.plan(w, max(w.now, min(normal, began+checkTime)), true)
	default:
		p.plan(w, max(w.now, normal), false)
	}
	p.again = false
}

// pollEarly polls at once the servers whose reports the pool needs early. It does nothing if
// all sidecars share the reports of one Prometheus server.
func (s *sidecar) pollEarly(w *world) {
	for _, address := range s.pool.TakePolls() {
		switch p := &s.polls[w.byName[address]]; {
		case w.cfg.Sidecars.Together:
		case p.due == never:
			p.again = true
		default:
			p.plan(w, w.now, true)
		}
	}
}
