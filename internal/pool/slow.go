package pool

import (
	"fmt"
	"math"
	"slices"
	"time"
)

const (
	// An upstream becomes slow when its time to first byte is slowFrom times the median of the others, and stays slow
	// until it falls below slowUntil times. Part of the difference is attributed to its projects, so only upstreams
	// that are about ten times slower are found with certainty.
	slowFrom, slowUntil = 5, 2.5
	// enoughResponses is the minimum number of responses for judging an upstream. enoughOfProject is the minimum number
	// of a project's responses for comparing its times.
	enoughResponses, enoughOfProject = 20, 5
	// timesGain is the weight of a new time in the moving averages.
	timesGain = 0.05
)

// slowness compares the times to first byte at one upstream with the usual times of their projects. It models the
// logarithm of a time as the project's mean plus the upstream's logRatio, and learns both together. So an upstream is
// not slow only because its projects take long. A slow upstream does not change the projects' means: otherwise its
// times would soon count as usual.
type slowness struct {
	logRatio  float64
	responses int // number of responses that were compared
	slow      bool
}

// observe records a time to first byte, without the wait for a core. project is the mean of the logarithms of the
// project's times.
func (s *slowness) observe(took time.Duration, project *average) {
	known := project.n >= enoughOfProject
	if known {
		s.logRatio += timesGain * (logOf(took) - project.mean - s.logRatio)
		s.logRatio *= 1 - timesGain/20 // drift back to 0, which means as fast as the others
		s.responses++
	}
	if !s.slow || !known {
		project.observe(logOf(took)-s.logRatio, 1/timesGain)
	}
}

// judge decides whether the upstream is slow.
func (s *slowness) judge(all slownesses) {
	switch {
	case s.slow:
		s.slow = s.ratio(all) >= slowUntil
	case s.logRatio > 0:
		s.slow = s.ratio(all) >= slowFrom
	}
}

// ratio returns the upstream's time to first byte as a multiple of the lower median of the other upstreams; 0 is
// unknown.
func (s *slowness) ratio(all slownesses) float64 {
	n := len(all)
	if n < 2 || s.responses < enoughResponses {
		return 0
	}
	own, _ := slices.BinarySearch(all, s.logRatio)
	median := (n - 2) / 2
	if median >= own {
		median++ // leave this upstream out
	}
	return math.Exp(s.logRatio - all[median])
}

// describe returns a message if the upstream is slow, otherwise "".
func (s *slowness) describe(all slownesses) string {
	if !s.slow {
		return ""
	}
	return fmt.Sprintf("the time to first byte is %.2g times that of other upstreams for the same projects", s.ratio(all))
}

// slownesses holds the logRatios of all upstreams with enough responses, sorted.
type slownesses []float64
