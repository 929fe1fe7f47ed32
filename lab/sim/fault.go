package sim

import (
	"time"

	"example.org/pilotfish/internal/pool"
)

// FaultKind is what is wrong with an upstream.
type FaultKind string

const (
	// hung: it accepts connections and answers nothing. What runs there stands still, and it does not report.
	hung FaultKind = "hung"
	// slow: joblets that begin last Factor times as long.
	slow FaultKind = "slow"
	// failing: it answers each job with an error at once, and looks idle.
	failing FaultKind = "failing"
)

// Fault is what one upstream suffers for a time.
type Fault struct {
	Kind     FaultKind
	Upstream int // its number
	// At is when it begins, For how long it lasts.
	At, For time.Duration
	// Factor is how many times as long joblets last when slow.
	Factor float64
}

// suffers says whether a server has a kind of fault now.
func (s *server) suffers(kind FaultKind, now time.Duration) bool {
	f := s.fault
	return f != nil && f.Kind == kind && now >= f.At && now < f.At+f.For
}

// ends is when a joblet ends that begins now, on a server that does not hang: if it hangs before, so much later.
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

// resume lets a server that stood still take up the jobs that came meanwhile.
func (s *server) resume(w *world) {
	held := s.held
	s.held = nil
	for _, j := range held {
		s.advance(w, j)
	}
	s.dispatch(w)
}

// instant is how long the shortest answer takes.
const instant = time.Millisecond

// fails answers a job with an error.
func (s *server) fails(w *world, j *job) {
	if j.ended {
		return
	}
	s.completed++
	s.failed++
	j.assignment.Answered(w.time(w.now), false, nil)
	w.finish(j, pool.Failed, Failed)
}
