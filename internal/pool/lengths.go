package pool

import (
	"math"
	"time"

	"example.org/pilotfish/internal/recent"
	"example.org/pilotfish/pkg/selection"
)

const (
	// shrinkLengths is the weight of the mean of the next larger group in an estimate: as much as this number of the
	// group's own jobs. The next larger group of a length key is its project; that of a project is all jobs.
	shrinkLengths = 0.5
	// lastLengths is the number of jobs over which a group's durations are averaged.
	lastLengths = 30
	// keyedLengths is the maximum number of length keys that are kept: about 4 MB. savedLengths is the maximum number
	// of groups that Lengths returns: listing them holds the lock, and so delays claims, for about 5 ms.
	keyedLengths, savedLengths = 1 << 16, 1 << 14
	// maxLength is the longest duration in seconds that SetLengths accepts: about 30 years.
	maxLength = 1e9
)

// lengths learns how long jobs take once they run, in groups of three kinds: the jobs of a project with the same length
// key, the jobs of a project, and all jobs.
type lengths struct {
	all   average
	keyed *recent.Map[average] // by need.length
}

func newLengths() lengths {
	return lengths{average{mean: logOf(firstBytePrior), n: 1}, recent.NewMap[average](keyedLengths, nil)}
}

// learn observes the duration of a job.
func (l *lengths) learn(n *need, took time.Duration) {
	l.all.learn(&n.project.duration, took, lastLengths)
	if n.lengthKey != 0 {
		a, _ := l.keyed.Get(n.lengthKey)
		a.observe(logOf(took), lastLengths)
		l.keyed.Put(n.lengthKey, a)
	}
}

// expected returns the expected duration of a job in seconds, and the group that it was learned from; 0 and "" if
// nothing was learned yet.
func (l *lengths) expected(n *need) (seconds float64, by string) {
	if l.all.n <= 1 { // only the prior
		return 0, ""
	}
	seconds, by = l.all.expected(n.project.duration, shrinkLengths), "all"
	if n.project.duration.n > 0 {
		by = "project"
	}
	if n.lengthKey != 0 {
		if a, ok := l.keyed.Get(n.lengthKey); ok {
			larger := average{mean: math.Log(seconds)}
			seconds, by = larger.expected(a, shrinkLengths), "length_key"
		}
	}
	return seconds, by
}

// coreTime returns how long a job is expected to hold a core of an upstream: its duration, and the fetch of the data
// that is not cached there.
func (l *lengths) coreTime(n *need, v *selection.View, fetch float64) (seconds float64, by string) {
	if seconds, by = l.expected(n); by == "" {
		return 0, ""
	}
	return seconds + (1-v.Warm)*fetch, by
}
