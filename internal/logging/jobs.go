package logging

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/record"
)

// Jobs writes a line for each job that its settings choose.
type Jobs struct {
	log   *Log
	clock clock
	// good counts the jobs that neither failed nor were slow.
	good atomic.Int64

	mu     sync.Mutex
	unread int       // jobs since the last warning of them
	warned time.Time // when that was
}

// NewJobs returns one that has written nothing yet.
func NewJobs(log *Log) *Jobs { return &Jobs{log: log} }

// Write writes the one line of a job that ended at an instant: a warning where it failed.
func (l *Jobs) Write(now time.Time, set Settings, r *record.Job) {
	if r.PassedUnread() {
		l.warnUnread(now, r)
	}
	failed := r.Outcome != intake.Answered && r.Outcome != intake.Gone
	if !l.chosen(set, failed, r.Total >= set.Slow) {
		return
	}
	level := zap.InfoLevel
	if failed {
		level = zap.WarnLevel
	}
	if !l.log.Level.Enabled(level) {
		return
	}
	var room [1 << 10]byte // most lines have half of it
	l.log.lines.add(line(room[:0]).job(level, &l.clock, now, r))
}

// warnUnread warns that bodies are passed on without being read: a job of high
// priority may be among them. It warns once a minute at most, with any settings.
func (l *Jobs) warnUnread(now time.Time, r *record.Job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unread++
	if now.Sub(l.warned) < time.Minute {
		return
	}
	l.log.Warn("jobs are passed on without being read: what they say of their priority and project is lost",
		zap.Int("jobs", l.unread), zap.String("last", r.Unread))
	l.unread, l.warned = 0, now
}

// chosen says whether a job gets its line. Of the jobs that are neither failed
// nor slow, the share that the settings name are spread evenly.
func (l *Jobs) chosen(set Settings, failed, slow bool) bool {
	switch {
	case set.Jobs == noJobs:
		return false
	case failed || slow && set.Jobs != failedJobs:
		return true
	case set.Jobs != allJobs:
		return false
	}
	n := float64(l.good.Add(1))
	return math.Floor(n*set.Share) > math.Floor((n-1)*set.Share)
}
