package dispatch

import (
	"container/list"
	"errors"
	"fmt"
	"time"

	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/selection"
)

// The reasons for which a job is shed.
var (
	// ErrFull: there is no room to wait, or a high job needed it.
	ErrFull = errors.New("too many jobs wait for an upstream")
	// ErrDisplaced is the ErrFull of a job that waited until a high one needed its place.
	ErrDisplaced = fmt.Errorf("%w: a high job took the place", ErrFull)
	// ErrWaited: no upstream became eligible in the time the job may wait.
	ErrWaited = errors.New("no upstream became eligible in time")
)

// QueueSettings bounds the jobs that wait for an eligible upstream.
type QueueSettings struct {
	// Jobs is how many jobs may wait.
	Jobs int `yaml:"jobs"`
	// Bytes bounds the bodies of the jobs that wait, together. No file sets it: it is a
	// part of the memory for bodies.
	Bytes settings.Size `yaml:"-"`
	// Wait is how long a job may wait in all, for an eligible upstream and for connections that are refused, if the job
	// has no queue timeout of its own.
	Wait time.Duration `yaml:"wait"`
}

// DefaultQueue is the bounds of an empty file.
func DefaultQueue() QueueSettings {
	return QueueSettings{Jobs: 1000, Bytes: 256 << 20, Wait: 10 * time.Second}
}

// Check reports what cannot be used.
func (s QueueSettings) Check(f *settings.Faults) {
	f.AtLeast("jobs", int64(s.Jobs), 1)
	f.AtLeast("bytes", int64(s.Bytes), 1)
	f.Positive("wait", s.Wait)
}

// queue is the waiting jobs: high before low, and within a priority first come, first
// served. It is bounded in number and bytes.
type queue struct {
	bounds QueueSettings
	lists  [selection.Priorities]list.List // of *Job, the next first
	bytes  int64

	backlogs backlogs
}

// push lets j wait. When there is no room, a high job pushes out low ones, the latest first.
// They are returned as displaced and no longer wait. Otherwise ok is false, and j does not wait.
func (q *queue) push(now time.Time, j *Job) (displaced []*Job, ok bool) {
	if j.place != nil {
		panic("BUG: dispatch: a job waits twice")
	}
	jobs, bytes := q.len(), q.bytes+j.Bytes
	full := func() bool { return jobs >= q.bounds.Jobs || bytes > int64(q.bounds.Bytes) }
	if j.Priority == selection.High { // nobody is pushed out unless that makes enough room
		for last := q.lists[selection.Low].Back(); last != nil && full(); last = last.Prev() {
			out := last.Value.(*Job)
			displaced = append(displaced, out)
			jobs, bytes = jobs-1, bytes-out.Bytes
		}
	}
	if full() {
		return nil, false
	}
	for _, out := range displaced {
		q.remove(out)
	}
	j.place = q.lists[j.Priority].PushBack(j)
	q.bytes += j.Bytes
	q.backlogs.push(now, j)
	return displaced, true
}

// remove takes j out, wherever it stands, and reports whether it was waiting.
func (q *queue) remove(j *Job) bool {
	if j.place == nil {
		return false
	}
	q.lists[j.Priority].Remove(j.place)
	q.bytes -= j.Bytes
	q.backlogs.remove(j)
	j.place = nil
	return true
}

// all yields the waiting jobs in the order in which they are to be served.
// The one just yielded may be removed.
func (q *queue) all(yield func(*Job) bool) {
	for _, p := range [...]selection.Priority{selection.High, selection.Low} {
		for e := q.lists[p].Front(); e != nil; {
			next := e.Next()
			if !yield(e.Value.(*Job)) {
				return
			}
			e = next
		}
	}
}

// len is how many jobs wait.
func (q *queue) len() int {
	return q.lists[selection.High].Len() + q.lists[selection.Low].Len()
}

// reply is what a job hears when it asks for an upstream.
type reply uint8

const (
	// served: the job has its upstream, or knows that there is none for it.
	served reply = iota
	// noneEligible: no upstream may be picked now.
	noneEligible
	// passedOver: none may be picked for this job, because of what it is or where
	// it has been. That says nothing about the next job.
	passedOver
)

// maxAsked is how many waiting jobs in a row may hear that no upstream is
// eligible before the rest is not asked: they would mostly hear the same.
const maxAsked = 8

// serve lets the waiting jobs ask, in order. Those that are served leave the queue.
func (q *queue) serve(ask func(*Job) reply) {
	asked := 0
	for j := range q.all {
		switch ask(j) {
		case served:
			asked = 0
			q.remove(j)
		case noneEligible:
			if asked++; asked == maxAsked {
				return
			}
		case passedOver:
		}
	}
}
