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

// slowness is how long answers take to begin at an upstream, beside what is usual for their projects.
// The logarithm of a time is the sum of a part of the project's and a part of the upstream's, and both
// are learned together. So an upstream with long projects is not slow. What is usual for a project is
// not learned anew at a slow upstream, or it would soon be usual that it takes long.
type slowness struct {
	part    float64
	answers int // compared
	slow    bool
}

// observe takes in how long an answer took to begin, the wait aside. project is what is usual for its project.
func (s *slowness) observe(took time.Duration, project *average) {
	known := project.n >= enoughOfProject
	if known {
		s.part += timesGain * (logOf(took) - project.mean - s.part)
		s.part *= 1 - timesGain/20 // an upstream is like the others unless jobs show that it is not
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

// times is how many times as long as at the lower median of the other upstreams responses take to
// begin here; 0 is unknown.
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

// describe says that the upstream is slow; "" if it is not.
func (s *slowness) describe(all slownesses) string {
	if !s.slow {
		return ""
	}
	return fmt.Sprintf("responses take %.2g times as long to begin as at other upstreams, for the same projects", s.times(all))
}

// slownesses are the parts of all upstreams that have enough answers, sorted.
type slownesses []float64
