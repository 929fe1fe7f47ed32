package pool

import (
	"fmt"
	"math"
	"time"

	"example.org/pilotfish/internal/recent"
	"example.org/pilotfish/pkg/selection"
)

const (
	// shrinkLengths is the weight of the mean of the next larger group, in jobs: of the project for jobs with
	// a length key, of all jobs for a project.
	shrinkLengths = 0.5
	// lastLengths is the number of jobs of a group that count.
	lastLengths = 30
	// keyedLengths is the maximum number of length keys that are kept: about 4 MB. savedLengths is the
	// maximum number of groups that Lengths returns: claims wait for the lock while it lists them, some 5 ms.
	keyedLengths, savedLengths = 1 << 16, 1 << 14
	// maxLength is the longest duration in seconds that SetLengths accepts: some 30 years.
	maxLength = 1e9
)

// lengths learns how long jobs take once they run, by three groups: the jobs of a project with the same length key, the
// jobs of a project, and all jobs.
type lengths struct {
	all   average
	keyed *recent.Map[average] // by need.length
}

func newLengths() lengths {
	return lengths{average{mean: logOf(answerPrior), n: 1}, recent.NewMap[average](keyedLengths, nil)}
}

// learn observes the duration of a job.
func (l *lengths) learn(n *need, took time.Duration) {
	l.all.learn(&n.project.length, took, lastLengths)
	if n.length != 0 {
		a, _ := l.keyed.Get(n.length)
		a.observe(logOf(took), lastLengths)
		l.keyed.Put(n.length, a)
	}
}

// expected returns the expected duration of a job in seconds, and the group that it was learned from; 0 and "" while nothing was learned.
func (l *lengths) expected(n *need) (seconds float64, by string) {
	if l.all.n <= 1 { // only the prior
		return 0, ""
	}
	seconds, by = l.all.expected(n.project.length, shrinkLengths), "all"
	if n.project.length.n > 0 {
		by = "project"
	}
	if n.length != 0 {
		if a, ok := l.keyed.Get(n.length); ok {
			larger := average{mean: math.Log(seconds)}
			seconds, by = larger.expected(a, shrinkLengths), "length_key"
		}
	}
	return seconds, by
}

// hold returns how long a job is expected to hold a core of an upstream: its length, and the fetch of data that is not there.
func (l *lengths) hold(n *need, v *selection.View, fetch float64) (seconds float64, by string) {
	if seconds, by = l.expected(n); by == "" {
		return 0, ""
	}
	return seconds + (1-v.Warm)*fetch, by
}

// Length is what was learned of the durations of a group of jobs. Its keys are hashes.
type Length struct {
	// Project is the project, or Key the project and length key of the group; both are 0 for all jobs.
	Project uint64 `json:"project,omitempty"`
	Key     uint64 `json:"key,omitempty"`
	// Seconds is the geometric mean of the durations, and Jobs the number of jobs that it was learned from.
	Seconds float64 `json:"seconds"`
	Jobs    float64 `json:"jobs"`
}

// Lengths returns what was learned of the durations of jobs, at most 16,384 groups, those
// that were used lately first.
func (p *Pool) Lengths() []Length {
	length := func(a average) Length { return Length{Seconds: math.Exp(a.mean), Jobs: a.n} }
	list := append(make([]Length, 0, savedLengths), length(p.lengths.all))
	for key, a := range p.lengths.keyed.All() {
		if len(list) == savedLengths/2 {
			break
		}
		list = append(list, length(a))
		list[len(list)-1].Key = key
	}
	for id, s := range p.projects.All() {
		if len(list) == savedLengths {
			break
		}
		if s.length.n > 0 {
			list = append(list, length(s.length))
			list[len(list)-1].Project = id
		}
	}
	return list
}

// SetLengths replaces what was learned of the durations of jobs by what Lengths returned in an earlier process. Where the
// list is invalid, it returns an error and changes nothing.
func (p *Pool) SetLengths(list []Length) error {
	if len(list) > savedLengths {
		return fmt.Errorf("%d durations of jobs are more than %d", len(list), savedLengths)
	}
	for i, one := range list {
		if !(one.Seconds > 0 && one.Seconds <= maxLength && one.Jobs > 0 && one.Jobs <= maxLength) {
			return fmt.Errorf("duration %d is %g s of %g jobs: want more than 0 and at most %g", i+1, one.Seconds, one.Jobs, maxLength)
		}
	}
	for i := len(list) - 1; i >= 0; i-- { // those used lately last
		one := list[i]
		a := average{mean: math.Log(one.Seconds), n: one.Jobs}
		switch {
		case one.Key != 0:
			p.lengths.keyed.Put(one.Key, a)
		case one.Project != 0:
			p.projects.state(one.Project, true).length = a
		default:
			p.lengths.all = a
		}
	}
	return nil
}
