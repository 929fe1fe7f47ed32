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
	// errOutnumbered is that of a job whose project had more jobs waiting than another.
	errOutnumbered = fmt.Errorf("%w: a project with fewer of them took the place", ErrFull)
	// ErrWaited: no upstream became eligible in the time the job may wait.
	ErrWaited = errors.New("no upstream became eligible in time")
)

// QueueSettings bounds the jobs that wait for an eligible upstream.
type QueueSettings struct {
	// Jobs is how many jobs may wait.
	Jobs int `yaml:"jobs"`
	// Bytes bounds the bodies of the jobs that wait, together.
	Bytes settings.Size `yaml:"bytes"`
	// Wait is how long a job may wait that does not say.
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

// queue is the waiting jobs: high before low, within a priority in the order of
// their turns, and first come first served within a turn. It is bounded in number
// and bytes.
//
// Where it is fair, a project has one job in each turn. Otherwise all have the same.
type queue struct {
	bounds QueueSettings
	fair   bool
	lists  [selection.Priorities]list.List // of *Job, the next first
	turns  [selection.Priorities]uint64    // that are under way
	lines  map[uint64]*line                // by project, of those that wait
	bytes  int64
}

// push lets j wait. When there is no room, a high job pushes out low ones, and any
// job those of its priority with a later turn, the latest first. They are returned
// as displaced and no longer wait. Otherwise ok is false, and j does not wait.
func (q *queue) push(j *Job) (displaced []*Job, ok bool) {
	if j.place != nil {
		panic("BUG: dispatch: a job waits twice")
	}
	jobs, bytes, turn := q.len(), q.bytes+j.Bytes, q.turn(j)
	full := func() bool { return jobs >= q.bounds.Jobs || bytes > int64(q.bounds.Bytes) }
	// Nobody is pushed out unless that makes enough room.
	pushOut := func(p selection.Priority, after uint64) {
		for last := q.lists[p].Back(); last != nil && full() && last.Value.(*Job).turn >= after; last = last.Prev() {
			out := last.Value.(*Job)
			displaced = append(displaced, out)
			jobs, bytes = jobs-1, bytes-out.Bytes
		}
	}
	if j.Priority == selection.High {
		pushOut(selection.Low, 0)
	}
	pushOut(j.Priority, turn+1)
	if full() {
		return nil, false
	}
	for _, out := range displaced {
		q.remove(out)
	}
	q.insert(j, turn)
	return displaced, true
}

// turn is that of a newcomer: the one after its project's latest, or the one that is
// under way if none of its jobs waits.
func (q *queue) turn(j *Job) uint64 {
	if last := q.lists[j.Priority].Back(); !q.fair && last != nil {
		return last.Value.(*Job).turn
	}
	if l := q.lines[j.Project]; q.fair && l != nil && l.jobs[j.Priority] > 0 {
		return l.last[j.Priority] + 1
	}
	return q.turns[j.Priority]
}

// insert puts j behind those of its turn.
func (q *queue) insert(j *Job, turn uint64) {
	list := &q.lists[j.Priority]
	before := list.Back()
	for before != nil && before.Value.(*Job).turn > turn {
		before = before.Prev()
	}
	if j.turn = turn; before == nil {
		j.place = list.PushFront(j)
	} else {
		j.place = list.InsertAfter(j, before)
	}
	q.bytes += j.Bytes
	if q.lines == nil {
		q.lines = map[uint64]*line{}
	}
	l := q.lines[j.Project]
	if l == nil {
		l = new(line)
		q.lines[j.Project] = l
	}
	l.jobs[j.Priority]++
	l.last[j.Priority] = turn
}

// remove takes j out, wherever it stands, and reports whether it was waiting.
func (q *queue) remove(j *Job) bool {
	if j.place == nil {
		return false
	}
	q.lists[j.Priority].Remove(j.place)
	q.bytes -= j.Bytes
	j.place = nil
	l := q.lines[j.Project]
	if l.jobs[j.Priority]--; l.ahead(selection.Low) == 0 {
		delete(q.lines, j.Project)
	} else if j.turn == l.last[j.Priority] && j.turn > 0 {
		l.last[j.Priority]-- // the latest has left: the next comes in its place
	}
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

// ahead is how many waiting jobs a newcomer of priority p would let go first.
func (q *queue) ahead(p selection.Priority) int {
	n := q.lists[selection.High].Len()
	if p == selection.Low {
		n += q.lists[selection.Low].Len()
	}
	return n
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
			q.turns[j.Priority] = max(q.turns[j.Priority], j.turn)
			q.remove(j)
		case noneEligible:
			if asked++; asked == maxAsked {
				return
			}
		case passedOver:
		}
	}
}
