package dispatch

import (
	"time"

	"example.org/pilotfish/pkg/selection"
)

// backlog counts the waiting jobs of one project and the rate at which its jobs get upstreams. At the
// project's limit, each job that ends lets one waiting job start.
type backlog struct {
	waiting [selection.Priorities]int
	since   time.Time // start of the measured period: when the project's first job began to wait, or later
	granted float64   // jobs that got an upstream since then
}

// backlogMemory is the longest measured period. Beyond it, period and count are halved, so the rate follows a change.
const backlogMemory = time.Minute

// grant counts a job of the project that got an upstream.
func (b *backlog) grant(now time.Time) {
	if now.Sub(b.since) > backlogMemory {
		b.since, b.granted = now.Add(-backlogMemory/2), b.granted*float64(backlogMemory)/2/float64(now.Sub(b.since))
	}
	b.granted++
}

// timeFor estimates the queue time of one more job of priority p: the jobs ahead of it divided by the rate of
// grants. It counts one grant more than it saw, so it underestimates and a job is refused only on evidence.
func (b *backlog) timeFor(now time.Time, p selection.Priority) time.Duration {
	before := b.waiting[selection.High]
	if p == selection.Low {
		before += b.waiting[selection.Low]
	}
	return time.Duration(float64(before) * float64(now.Sub(b.since)) / (b.granted + 1))
}

// backlogs maps the key of each project that has waiting jobs to its backlog.
type backlogs map[uint64]*backlog

func (b backlogs) push(now time.Time, j *Job) {
	of := b[j.Project]
	if of == nil {
		of = &backlog{since: now}
		b[j.Project] = of
	}
	of.waiting[j.Priority]++
}

func (b backlogs) remove(j *Job) {
	of := b[j.Project]
	of.waiting[j.Priority]--
	if of.waiting == [selection.Priorities]int{} {
		delete(b, j.Project)
	}
}

// of returns the number of waiting jobs of a project.
func (b backlogs) of(project uint64) int {
	if of := b[project]; of != nil {
		return of.waiting[selection.High] + of.waiting[selection.Low]
	}
	return 0
}
