package dispatch

import (
	"errors"
	"fmt"
	"time"

	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/selection"
)

// The errors of jobs that are shed.
var (
	// ErrFull: the queue is full.
	ErrFull = errors.New("too many jobs wait for an upstream")
	// ErrDisplaced: the queue was full, and a job of high priority displaced this one. It wraps ErrFull.
	ErrDisplaced = fmt.Errorf("%w: displaced by a job of high priority", ErrFull)
	// ErrWaited: no upstream became eligible within the job's queue timeout.
	ErrWaited = errors.New("no upstream became eligible in time")
)

// QueueSettings bounds the queue of jobs that wait for an eligible upstream.
type QueueSettings struct {
	// Jobs is the maximum number of jobs in the queue.
	Jobs int `yaml:"jobs"`
	// Bytes is the maximum total size of the bodies in the queue. It is not a key of the file:
	// it is derived from the memory for bodies.
	Bytes settings.Size `yaml:"-"`
	// Wait is the total time a job can wait for an eligible upstream, including attempts whose connection was refused.
	// A queue timeout in the job overrides it.
	Wait time.Duration `yaml:"wait"`
}

// DefaultQueue returns the settings of an empty file.
func DefaultQueue() QueueSettings {
	return QueueSettings{Jobs: 1000, Bytes: 256 << 20, Wait: 10 * time.Second}
}

// Check adds invalid values to f.
func (s QueueSettings) Check(f *settings.Faults) {
	f.AtLeast("jobs", int64(s.Jobs), 1)
	f.AtLeast("bytes", int64(s.Bytes), 1)
	f.Positive("wait", s.Wait)
}

// queue holds the waiting jobs: high priority before low, and first come, first served
// within a priority. It is bounded in jobs and bytes.
type queue struct {
	bounds QueueSettings
	lines  [selection.Priorities]lines
	pushed uint64 // the number of the latest job
	bytes  int64

	backlogs backlogs
}

func newQueue(bounds QueueSettings) queue {
	return queue{bounds: bounds, lines: [...]lines{newLines(), newLines()}, backlogs: backlogs{}}
}

// push adds j to the queue. When the queue is full, a job of high priority displaces jobs of low
// priority, the latest first; push returns them as displaced. If ok is false, the queue is unchanged.
func (q *queue) push(now time.Time, j *Job) (displaced []*Job, ok bool) {
	if j.wait.place != nil {
		panic("BUG: dispatch: a job is queued twice")
	}
	jobs, bytes := q.len(), q.bytes+j.Bytes
	full := func() bool { return jobs >= q.bounds.Jobs || bytes > int64(q.bounds.Bytes) }
	if j.Priority == selection.High { // only select the jobs here: none is displaced if displacing all would not make enough room
		for last := q.lines[selection.Low].all.Back(); last != nil && full(); last = last.Prev() {
			out := jobOf(last)
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
	q.pushed++
	j.wait.number = q.pushed
	q.lines[j.Priority].push(j)
	q.bytes += j.Bytes
	q.backlogs.push(now, j)
	return displaced, true
}

// remove removes j from the queue and reports whether it was there.
func (q *queue) remove(j *Job) bool {
	if j.wait.place == nil {
		return false
	}
	q.lines[j.Priority].remove(j)
	q.bytes -= j.Bytes
	q.backlogs.remove(j)
	return true
}

// len returns the number of queued jobs.
func (q *queue) len() int {
	return q.lines[selection.High].all.Len() + q.lines[selection.Low].all.Len()
}

// claimResult is the result of a job's attempt to claim an upstream.
type claimResult uint8

const (
	// served: the job has an upstream or a final error, and leaves the queue.
	served claimResult = iota
	// noneEligible: no upstream is eligible for any job.
	noneEligible
	// passedOver: no upstream is eligible for this job, because of its priority or the upstreams
	// it has tried. The next job may still find one.
	passedOver
	// atLimit: the job's project is at its limit. Its other jobs are passed over, too.
	atLimit
	// enough: the job and those behind it are served later.
	enough
)

// maxIneligible is the number of consecutive noneEligible results after which serve
// stops: the remaining jobs would mostly fail, too, and the queue can be long.
const maxIneligible = 8

// serve calls claim for the queued jobs, in order, and removes the served jobs from the queue.
func (q *queue) serve(claim func(*Job) claimResult) {
	ineligible := 0
	for _, p := range [...]selection.Priority{selection.High, selection.Low} {
		for next := q.lines[p].start(); ; {
			j := next.job()
			if j == nil {
				break
			}
			result := claim(j)
			if result == enough {
				return
			}
			if next.after(j, result); result == served {
				q.remove(j)
				ineligible = 0
			}
			if result != noneEligible {
				continue
			}
			if ineligible++; ineligible == maxIneligible {
				return
			}
		}
	}
}
