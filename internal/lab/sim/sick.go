package sim

import (
	"slices"
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

// sick says whether the server has no answer for a job that comes now.
func (s *server) sick(now time.Duration) bool {
	for _, f := range s.faults {
		if slices.Contains([]FaultKind{hung, refusing, failing, empty}, f.Kind) && f.active(now) {
			return true
		}
	}
	return false
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
type resume struct {
	server *server
	fault  *Fault
}

// startFaults gives the servers their faults, and plans when they resume.
func (w *world) startFaults() {
	for _, f := range w.cfg.Fleet.Faults {
		for _, s := range w.servers[f.First : f.First+f.Upstreams] {
			s.faults = append(s.faults, f)
			if f.Kind == hung && f.until(f.At) != never {
				w.events.add(f.until(f.At), rankFleet, resume{s, f})
			}
		}
	}
}

func (r resume) happen(w *world) {
	s := r.server
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
	if next := r.fault.again(w.now); next != never && !w.over() {
		w.events.add(r.fault.until(next), rankFleet, r)
	}
}

// instant is how long the shortest answer takes.
const instant = time.Millisecond

// sickAnswer is the answer of a server that fails at once, or has nothing to say.
type sickAnswer struct {
	server  *server
	job     *job
	healthy bool
}

func (b sickAnswer) happen(w *world) {
	j := b.job
	if j.ended {
		return
	}
	now, outcome := w.time(w.now), pool.Answered
	b.server.completed++
	if !b.healthy {
		outcome = pool.Failed
		b.server.failed++
	}
	j.assignment.Answered(now, b.healthy, nil)
	j.assignment.Done(now, outcome)
	w.end(j, Failed)
	j.side.serve(w)
}

// lie makes of a report what a server with faults says.
func (s *server) lie(r *pool.Report, now time.Duration) {
	for _, f := range s.faults {
		if !f.active(now) {
			continue
		}
		switch f.Kind {
		case listless:
			r.Cached = nil
		case coreless:
			r.Cores = 0
		case manyCores:
			r.Cores = int(f.Factor)
		case idle:
			r.Running, r.Stalled, r.CoresBusy = [2]float64{}, [2]float64{}, 0
		case greedy:
			r.Cached = everything{}
		case resets:
			r.Completed, r.Failed = 0, 0
		case hung, refusing, slow, failing, empty, silent, loadless, nan:
		}
	}
}

// everything is a listing that names every project.
type everything struct{}

func (everything) Contains(uint64) bool { return true }
func (everything) Bytes(uint64) float64 { return 0 }
func (everything) Len() int             { return 1 << 30 }
