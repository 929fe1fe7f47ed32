package sim

import (
	"time"

	"example.org/pilotfish/internal/pool"
)

// FaultKind is the kind of a simulated fault.
type FaultKind string

const (
	// hung: the upstream accepts connections but sends no responses and no reports. Its joblets stop.
	hung FaultKind = "hung"
	// slow: joblets that start during the fault take Factor times as long.
	slow FaultKind = "slow"
	// failing: the upstream responds to each job with an error at once, and so looks idle.
	failing FaultKind = "failing"
)

// Fault is a temporary fault of one upstream.
type Fault struct {
	Kind     FaultKind
	Upstream int // index of the upstream
	// At is the start of the fault, For its duration.
	At, For time.Duration
	// Factor multiplies the duration of joblets if the fault is slow.
	Factor float64
}

// suffers reports whether a server has this kind of fault now.
func (s *server) suffers(kind FaultKind, now time.Duration) bool {
	f := s.fault
	return f != nil && f.Kind == kind && now >= f.At && now < f.At+f.For
}

// ends returns the end of a joblet that starts now on a server that is not hung. If the server will hang during the
// joblet, the end is later by the duration of the fault.
func (s *server) ends(now time.Duration, b *joblet) time.Duration {
	factor := 1.0
	if s.suffers(slow, now) {
		factor = s.fault.Factor
	}
	takes := time.Duration(float64(b.work) * factor / s.speed)
	if f := s.fault; f != nil && f.Kind == hung && now < f.At && now+takes >= f.At {
		takes += f.For
	}
	return now + takes
}

// resume starts the jobs that arrived while the server was hung.
func (s *server) resume(w *world) {
	held := s.held
	s.held = nil
	for _, j := range held {
		s.advance(w, j)
	}
	s.dispatch(w)
}

// instant is the time to refuse a connection or to respond with an error.
const instant = time.Millisecond

// fails responds to a job with an error.
func (s *server) fails(w *world, j *job) {
	if j.ended {
		return
	}
	s.completed++
	s.failed++
	j.assignment.Answered(w.time(w.now), false, nil)
	w.finish(j, pool.Failed, Failed)
}
