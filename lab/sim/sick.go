package sim

import (
	"time"

	"example.org/pilotfish/internal/pool"
)

// suffers is the fault of a kind that a server has now; nil if it has none.
func (s *server) suffers(kind FaultKind, now time.Duration) *Fault {
	for _, f := range s.faults {
		if f.Kind == kind && f.active(now) {
			return f
		}
	}
	return nil
}

// stood is for how long the server has stood still before an instant.
func (s *server) stood(now time.Duration) (sum time.Duration) {
	for _, f := range s.faults {
		if f.Kind == hung {
			sum += f.spent(now)
		}
	}
	return sum
}

// resume lets a server that stood still take up the jobs that came meanwhile.
type resume server

// startFaults gives the servers their faults, and plans when they resume.
func (w *world) startFaults() {
	if f := w.cfg.Fleet.Fault; f != nil {
		s := w.servers[f.Upstream]
		s.faults = append(s.faults, f)
		if f.Kind == hung && f.end() != never {
			w.events.Add(f.end(), rankFleet, (*resume)(s))
		}
	}
}

func (r *resume) happen(w *world) {
	s := (*server)(r)
	if s.suffers(hung, w.now) != nil {
		return // another fault goes on
	}
	held := s.held
	s.held = nil
	for _, h := range held {
		if j := h.job; !j.ended && j.server == s && j.seq == h.seq && j.epoch == s.epoch {
			s.advance(w, j)
		}
	}
	s.dispatch(w)
}

// instant is how long the shortest answer takes.
const instant = time.Millisecond

// sickAnswer is the error of a server that fails at once.
type sickAnswer struct {
	server *server
	job    *job
}

func (b sickAnswer) happen(w *world) {
	j := b.job
	if j.ended {
		return
	}
	now := w.time(w.now)
	b.server.completed++
	b.server.failed++
	j.assignment.Answered(now, false, nil)
	j.assignment.Done(now, pool.Failed)
	w.end(j, Failed)
	j.side.serve(w)
}
