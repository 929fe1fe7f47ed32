package pool

import (
	"fmt"
	"math"
)

// Length is the learned duration of a group of jobs. Its keys are hashes.
type Length struct {
	// Project is the project, or Key the project and length key of the group; both are 0 for all jobs.
	Project uint64 `json:"project,omitempty"`
	Key     uint64 `json:"key,omitempty"`
	// Seconds is the geometric mean of the durations, and Jobs the number of jobs that it was learned from.
	Seconds float64 `json:"seconds"`
	Jobs    float64 `json:"jobs"`
}

// Lengths returns the learned durations of jobs, of at most 16,384 groups, the most recently used first.
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
		if s.duration.n > 0 {
			list = append(list, length(s.duration))
			list[len(list)-1].Project = id
		}
	}
	return list
}

// SetLengths replaces the learned durations by a list that Lengths returned in an earlier process. If the list is
// invalid, it returns an error and changes nothing.
func (p *Pool) SetLengths(list []Length) error {
	if len(list) > savedLengths {
		return fmt.Errorf("%d learned durations: at most %d are allowed", len(list), savedLengths)
	}
	for i, one := range list {
		if !(one.Seconds > 0 && one.Seconds <= maxLength && one.Jobs > 0 && one.Jobs <= maxLength) {
			return fmt.Errorf("learned duration %d has %g seconds and %g jobs: both must be above 0 and at most %g", i+1, one.Seconds, one.Jobs, maxLength)
		}
	}
	for i := len(list) - 1; i >= 0; i-- { // the most recently used last
		one := list[i]
		a := average{mean: math.Log(one.Seconds), n: one.Jobs}
		switch {
		case one.Key != 0:
			p.lengths.keyed.Put(one.Key, a)
		case one.Project != 0:
			p.projects.state(one.Project, true).duration = a
		default:
			p.lengths.all = a
		}
	}
	return nil
}
