package pool

import (
	"fmt"
	"math"
	"slices"
	"time"
)

const (
	// slowFrom is how many times as long as at the median upstream answers must take to begin for an
	// upstream to be slow; below slowUntil it is slow no longer. One that takes ten times as long is
	// always above the first: of the difference, the projects take a part for their own.
	slowFrom, slowUntil = 5, 2.5
	// enoughAnswers is how many answers of an upstream must have been compared, and enoughOfProject
	// how many a project must have had before.
	enoughAnswers, enoughOfProject = 20, 5
	// timesGain is how much a new time weighs.
	timesGain = 0.05
)

// compareTimes takes in how long an answer at m took to begin, the wait aside.
func (p *Pool) compareTimes(m *member, project *projectState, took time.Duration) {
	s, usual := &m.slowness, &project.usual
	known := usual.n >= enoughOfProject
	if known {
		s.part += timesGain * (logOf(took) - usual.mean - s.part)
		s.part *= 1 - timesGain/20 // an upstream is like the others unless jobs show that it is not
		s.answers++
	}
	if !s.slow || !known {
		usual.observe(logOf(took)-s.part, 1/timesGain)
	}
	if p.untimed++; p.untimed*comparedTogether >= len(p.set) {
		p.untimed, p.slownesses = 0, p.slownesses[:0]
		for _, other := range p.set {
			if other.slowness.answers >= enoughAnswers {
				p.slownesses = append(p.slownesses, other.slowness.part)
			}
		}
		slices.Sort(p.slownesses)
	}
	switch {
	case s.slow:
		s.slow = p.times(m) >= slowUntil
	case s.part > 0:
		s.slow = p.times(m) >= slowFrom
	}
}

// times is how many times as long as at the lower median of the other upstreams responses take to
// begin at m; 0 is unknown.
func (p *Pool) times(m *member) float64 {
	n := len(p.slownesses)
	if n < 2 || m.slowness.answers < enoughAnswers {
		return 0
	}
	own, _ := slices.BinarySearch(p.slownesses, m.slowness.part)
	median := (n - 2) / 2
	if median >= own {
		median++ // of the others
	}
	return math.Exp(m.slowness.part - p.slownesses[median])
}

// slow says that an upstream is slow; "" if it is not.
func (p *Pool) slow(m *member) string {
	if !m.slowness.slow {
		return ""
	}
	return fmt.Sprintf("responses take %.2g times as long to begin as at other upstreams, for the same projects", p.times(m))
}
