package dispatch

import (
	"time"

	"example.org/pilotfish/pkg/selection"
)

// line is the jobs of one project that wait in the queue.
type line struct {
	jobs [selection.Priorities]int
	last [selection.Priorities]uint64 // the turn of the latest

	// How fast jobs leave it while the project is at its limit: when the first was
	// held, and when the last ones left since.
	since time.Time
	left  [16]time.Time
	count int // of those that left
}

// ahead is how many of its jobs a newcomer of priority p would let go first.
func (l *line) ahead(p selection.Priority) int {
	n := l.jobs[selection.High]
	if p == selection.Low {
		n += l.jobs[selection.Low]
	}
	return n
}

// hold notes that a job waits because its project is at its limit.
func (l *line) hold(now time.Time) {
	if l.since.IsZero() {
		l.since = now
	}
}

// leave notes that a job got an upstream.
func (l *line) leave(now time.Time) {
	if l.since.IsZero() {
		return
	}
	l.left[l.count%len(l.left)] = now
	l.count++
}

// wait is how long a newcomer of priority p has to expect to wait: for each job
// that goes before it, and for itself, the mean time from one that leaves to the
// next. While none has left, that mean is at least the time since the first was held.
func (l *line) wait(now time.Time, p selection.Priority) time.Duration {
	if l.since.IsZero() {
		return 0
	}
	from, steps := l.since, max(l.count, 1)
	if l.count >= len(l.left) {
		from, steps = l.left[l.count%len(l.left)], len(l.left) // the oldest: the present stretch counts as a step
	}
	return time.Duration(l.ahead(p)+1) * now.Sub(from) / time.Duration(steps)
}
