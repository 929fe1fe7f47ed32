package dispatch

import (
	"time"

	"example.org/pilotfish/pkg/selection"
)

// backlog is the waiting jobs of one project, and how fast the project's jobs get upstreams while
// some wait: at its limit, one for each job that ends.
type backlog struct {
	waiting [selection.Priorities]int
	since   time.Time // when the first of them began to wait, or later
	granted float64   // jobs that got an upstream since then
}

// backlogMemory is how long grants count fully before they are halved, so that the estimate follows a change.
const backlogMemory = time.Minute

// grant counts a job of the project that got an upstream.
func (b *backlog) grant(now time.Time) {
	if now.Sub(b.since) > backlogMemory {
		b.since, b.granted = now.Add(-backlogMemory/2), b.granted*float64(backlogMemory)/2/float64(now.Sub(b.since))
	}
	b.granted++
}

// timeFor estimates how long one more job of priority p waits for those before it. It is a lower bound: the
// next grant is assumed to be due, so that a job is refused only on evidence.
func (b *backlog) timeFor(now time.Time, p selection.Priority) time.Duration {
	before := b.waiting[selection.High]
	if p == selection.Low {
		before += b.waiting[selection.Low]
	}
	return time.Duration(float64(before) * float64(now.Sub(b.since)) / (b.granted + 1))
}

// backlogs are those of all projects with waiting jobs.
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

// of is how many jobs of a project wait.
func (b backlogs) of(project uint64) int {
	if of := b[project]; of != nil {
		return of.waiting[selection.High] + of.waiting[selection.Low]
	}
	return 0
}
