package logging

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"example.org/pilotfish/internal/record"
)

// Jobs writes a line for each job that its settings choose.
type Jobs struct {
	log *Log
	// good counts the jobs that neither failed nor were slow.
	good atomic.Int64

	mu     sync.Mutex
	unread int       // jobs since the last warning of them
	warned time.Time // when that was
}

// NewJobs returns one that has written nothing yet.
func NewJobs(log *Log) *Jobs { return &Jobs{log: log} }

// Write writes the one line of a job that has ended: a warning where it failed.
func (l *Jobs) Write(set Settings, r *record.Job) {
	now := r.Ended()
	if r.PassedUnread() {
		l.warnUnread(now, r)
	}
	if !l.chosen(set, r.Failed()) {
		return
	}
	level := zap.InfoLevel
	if r.Failed() {
		level = zap.WarnLevel
	}
	if line := l.log.Check(level, "job"); line != nil {
		line.Time = now
		line.Write(zap.Inline(r))
	}
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

// chosen says whether a job gets its line. Of the jobs that did not fail, the share that the
// settings name are spread evenly.
func (l *Jobs) chosen(set Settings, failed bool) bool {
	switch {
	case set.Jobs == noJobs:
		return false
	case failed:
		return true
	case set.Jobs != allJobs:
		return false
	}
	n := float64(l.good.Add(1))
	return math.Floor(n*set.Share) > math.Floor((n-1)*set.Share)
}
