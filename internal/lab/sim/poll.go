package sim

import (
	"time"

	"example.org/pilotfish/internal/pool"
)

// poll is the polling of one server by one sidecar, or by all together, and what
// is remembered of it.
type poll struct {
	sides  []*sidecar
	server *server

	life                 int // of the server, that the rest is of
	begun, completed     int
	waitSum, responseSum float64
}

func (w *world) startPolls() {
	groups := [][]*sidecar{w.sidecars}
	if !w.cfg.Sidecars.Together {
		groups = nil
		for i := range w.sidecars {
			groups = append(groups, w.sidecars[i:i+1])
		}
	}
	for _, sides := range groups {
		polls := make([]poll, len(w.servers))
		for i, s := range w.servers {
			polls[i] = poll{sides: sides, server: s}
			phase := time.Duration(w.polls.Int64N(int64(w.cfg.Sidecars.Interval)))
			w.events.add(phase, rankReport, &polls[i])
		}
	}
}

// happen polls a server and sets the time for the next poll.
func (p *poll) happen(w *world) {
	interval := w.cfg.Sidecars.Interval
	if w.over() {
		return
	}
	jitter := time.Duration((w.polls.Float64()*0.4 - 0.2) * float64(interval))
	w.events.add(w.now+interval+jitter, rankReport, p)
	if !p.server.reports(w) {
		return
	}
	r := &reply{poll: p, report: p.server.report(w, p)}
	if w.cfg.Sidecars.Lag > 0 {
		w.events.add(w.now+w.cfg.Sidecars.Lag, rankReport, r)
		return
	}
	r.happen(w)
}

// reports says whether the server answers a poll now.
func (s *server) reports(w *world) bool {
	return s.up && !w.frozen() && s.suffers(hung, w.now) == nil && s.suffers(refusing, w.now) == nil && s.suffers(silent, w.now) == nil
}

// reply is the answer to a poll.
type reply struct {
	poll   *poll
	report pool.Report
}

func (r *reply) happen(w *world) {
	s := r.poll.server
	for _, side := range r.poll.sides {
		w.totals.Reports++
		if s.suffers(loadless, w.now) != nil {
			side.pool.Listing(r.report.At, s.address, r.report.Cached)
		} else {
			side.pool.Report(w.time(w.now), s.address, r.report)
		}
		side.serve(w)
	}
}
