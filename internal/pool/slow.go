package pool

import (
	"fmt"
	"math"
	"slices"
	"time"
)

const (
	// An upstream becomes slow at slowFrom times the median time to first byte, and stays slow down to slowUntil times.
	// One at ten times is always found: part of the difference is attributed to its projects.
	slowFrom, slowUntil = 5, 2.5
	// enoughAnswers is the number of an upstream's responses from which it is judged. enoughOfProject is the number of a
	// project's responses from which they are compared.
	enoughAnswers, enoughOfProject = 20, 5
	// timesGain is the weight of a new time.
	timesGain = 0.05
)

// slowness compares the times to first byte at one upstream with the usual ones of their projects. The logarithm of a time is
// the sum of a project's part and an upstream's part, which are learned together. So an upstream with long projects is not
// slow. A slow upstream does not change a project's part, or being slow would soon be usual.
type slowness struct {
	part    float64
	answers int // number of responses that were compared
	slow    bool
}

// observe records a time to first byte, without the wait. project is the project's part.
func (s *slowness) observe(took time.Duration, project *average) {
	known := project.n >= enoughOfProject
	if known {
		s.part += timesGain * (logOf(took) - project.mean - s.part)
		s.part *= 1 - timesGain/20 // drift back to 0, which is like the others
		s.answers++
	}
	if !s.slow || !known {
		project.observe(logOf(took)-s.part, 1/timesGain)
	}
}

// judge decides whether the upstream is slow.
func (s *slowness) judge(all slownesses) {
	switch {
	case s.slow:
		s.slow = s.times(all) >= slowUntil
	case s.part > 0:
		s.slow = s.times(all) >= slowFrom
	}
}

// times is the ratio of the time to first byte to the lower median of the other upstreams; 0 is unknown.
func (s *slowness) times(all slownesses) float64 {
	n := len(all)
	if n < 2 || s.answers < enoughAnswers {
		return 0
	}
	own, _ := slices.BinarySearch(all, s.part)
	median := (n - 2) / 2
	if median >= own {
		median++ // of the others
	}
	return math.Exp(s.part - all[median])
}

// describe says in words that the upstream is slow; "" if it is not.
func (s *slowness) describe(all slownesses) string {
	if !s.slow {
		return ""
	}
	return fmt.Sprintf("the time to first byte is %.2g times that of other upstreams for the same projects", s.times(all))
}

// slownesses are the parts of all upstreams with enough responses, sorted.
type slownesses []float64
