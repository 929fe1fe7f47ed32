package main

import (
	"runtime"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"example.org/pilotfish/internal/admin"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
	"example.org/pilotfish/internal/record"
)

const shownFailures = 50

// served holds the quality of service, the last failed jobs and the last
// responses, under one lock.
type served struct {
	log *zap.Logger

	mu       sync.Mutex
	machine  *quality.Machine
	failures []map[string]any // lines of the log, the latest last
	landings admin.Landings
}

func newServed(log *zap.Logger) *served {
	s := &served{log: log, machine: quality.New(time.Now())}
	s.machine.Pause = func(do func()) { // lets jobs get the lock
		s.mu.Unlock()
		defer s.mu.Lock()
		do()
		runtime.Gosched() // otherwise the scheduler can preempt a later part, which has the lock
	}
	return s
}

// began counts a response that has started.
func (s *served) began(now time.Time, j *dispatch.Job, c pool.Choice, hint *pool.Hint) {
	if j.Prefetch { // nobody waits for a prefetch
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine.Began(now, j, c, hint)
}

func (s *served) ended(q quality.Settings, r *record.Job) {
	if r.Facts.Prefetch {
		return
	}
	now := r.Ended()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine.Ended(now, q, r)
	s.landings.Ended(now, r)
	limited := r.Outcome == intake.Shed && r.Shedding.Limits()
	result := r.Outcome == intake.Failed && !q.Count500 // a status of 500 is a normal result
	if r.Failed() && !limited && !result {
		line := zapcore.NewMapObjectEncoder()
		line.AddTime("at", now)
		_ = r.MarshalLogObject(line) // it never fails
		s.failures = append(s.failures, line.Fields)
		s.failures = s.failures[max(0, len(s.failures)-shownFailures):]
	}
}

// advance updates the modes, and logs changes.
func (s *served) advance(now time.Time, o quality.Moment) {
	s.mu.Lock()
	changes := s.machine.Advance(now, o)
	s.mu.Unlock()
	for _, c := range changes {
		fields := []zap.Field{zap.String("from", string(c.From)), zap.String("to", string(c.Mode)), zap.String("cause", c.Cause)}
		if c.Upstream != "" {
			fields = append(fields, zap.String("upstream", c.Upstream))
		}
		text := string(c.Mode) + ": " + c.Mode.Text()
		switch {
		case c.Mode == quality.Unknown, c.Mode == quality.Steady && c.From == quality.Unknown: // too few jobs, now or before
		case c.Mode == quality.Steady:
			s.log.Info(text, fields...)
		default:
			s.log.Warn(text, fields...)
		}
	}
}
