package sim

import (
	"slices"
	"time"

	"example.org/pilotfish/internal/pool"
)

// poll is the polling of one server by one sidecar, or by all together. It keeps
// the pace of internal/report: after a poll that failed the next ones come soon.
type poll struct {
	sides  []*sidecar
	server *server
	seen   seen

	due      time.Duration // when the next poll begins; never while one is under way
	check    bool          // the next one comes soon, and has less time
	again    bool          // ask again when the one under way is over
	failed   int           // in a row
	reported bool
}

// seen is a server's counters at the last poll.
type seen struct {
	life int // of the server, to which the counters belong
	counters
}

const (
	pollTime  = 2 * time.Second // how long a poll may take
	checkTime = time.Second     // how long a check may take, and how long after a failed poll it begins
	maxChecks = 3               // in a row
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

// plan makes the next poll begin at an instant, instead of when it was planned before.
func (p *poll) plan(w *world, at time.Duration, check bool) {
	if w.cfg.Sidecars.Unpolled {
		return
	}
	p.due, p.check = at, check
	w.events.Add(at, rankReport, func() { p.begin(w) })
}

// begin polls a server and plans the next poll.
func (p *poll) begin(w *world) {
	if w.now != p.due || w.over() {
		return
	}
	interval, s := w.cfg.Sidecars.Interval, p.server
	next := w.now + interval + time.Duration((w.polls.Float64()*0.4-0.2)*float64(interval))
	if patience := s.silence(w, p.check && p.reported); patience > 0 {
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

// silence is after how long a poll that begins now has failed; 0 if the server answers.
func (s *server) silence(w *world, check bool) time.Duration {
	switch {
	case s.up && !s.suffers(hung, w.now):
		return 0
	case check:
		return checkTime
	}
	return pollTime
}

// reply is the answer to a poll.
func (p *poll) reply(w *world, r pool.Report) {
	for _, side := range p.sides {
		w.totals.Reports++
		side.pool.Report(w.time(w.now), p.server.address, r)
		side.serve(w)
	}
}

// fail is the end of a poll that failed. normal is when the next poll begins that is no check.
func (p *poll) fail(w *world, began, normal time.Duration) {
	for _, side := range p.sides {
		side.pool.ReportFailed(w.time(w.now), p.server.address, pool.ErrNoResponse)
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

// askEarly polls the servers at once that the pool wants to hear from. Sidecars
// that have the reports of one Prometheus server cannot.
func (s *sidecar) askEarly(w *world) {
	for _, address := range s.pool.Ask() {
		switch p := &s.polls[w.byName[address]]; {
		case w.cfg.Sidecars.Together:
		case p.due == never:
			p.again = true
		default:
			p.plan(w, w.now, true)
		}
	}
}
