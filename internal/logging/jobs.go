package logging

import (
	"math"
	"sync/atomic"

	"go.uber.org/zap"

	"example.org/pilotfish/internal/record"
)

// Jobs writes a line for each job that its settings choose.
type Jobs struct {
	log *Log
	// good counts the jobs that neither failed nor were slow.
	good atomic.Int64
}

// NewJobs returns one that has written nothing yet.
func NewJobs(log *Log) *Jobs { return &Jobs{log: log} }

// Write writes the one line of a job that has ended: a warning where it failed.
func (l *Jobs) Write(set Settings, r *record.Job) {
	if !l.chosen(set, r.Failed()) {
		return
	}
	level := zap.InfoLevel
	if r.Failed() {
		level = zap.WarnLevel
	}
	if line := l.log.Check(level, "job"); line != nil {
		line.Time = r.Ended()
		line.Write(zap.Inline(r))
	}
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
