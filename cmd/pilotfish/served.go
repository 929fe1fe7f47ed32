package main

import (
	"sync"
	"time"

	"go.uber.org/zap"

	"example.org/pilotfish/internal/admin"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
	"example.org/pilotfish/internal/record"
)

const (
	shownFailures = 50
	shownProjects = 20
	shownOpen     = 20
)

// served is what is known of how jobs were served: the machine of quality, and the last
// failures, under one lock.
type served struct {
	log *zap.Logger

	mu       sync.Mutex
	machine  *quality.Machine
	failures []admin.Failure // the latest last
}

func newServed(log *zap.Logger, s quality.Settings) *served {
	return &served{log: log, machine: quality.New(time.Now(), s)}
}

// set replaces the settings.
func (s *served) set(q quality.Settings) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine.Set(q)
}

// began counts a response that has begun.
func (s *served) began(now time.Time, j *dispatch.Job, c pool.Choice) {
	bound := j.FirstByte
	if !j.Deadline.IsZero() {
		bound = min(bound, j.Deadline.Sub(j.Arrived))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine.Began(now, quality.FirstByte{Upstream: c.Address, Arrived: j.Arrived, Claimed: c.Claimed, Bound: bound})
}

// ended counts a job that has ended.
func (s *served) ended(r *record.Job) {
	now := r.Ended()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine.Ended(now, r)
	if limited := r.Outcome == intake.Shed && r.Shedding == intake.ProjectLimit; r.Failed() && !limited {
		s.failures = append(s.failures, failure(now, r))
		s.failures = s.failures[max(0, len(s.failures)-shownFailures):]
	}
}

func failure(now time.Time, r *record.Job) admin.Failure {
	f := admin.Failure{
		ID: r.ID, Session: r.Facts.Session, Project: r.Facts.Project, Priority: r.Facts.Priority.String(),
		At: now, Seconds: r.Total.Seconds(), Outcome: r.Outcome.String(), Status: r.Status, Reason: r.Reason, Error: r.Err, Upstreams: []string{},
	}
	for i := range r.Attempts {
		f.Upstreams = append(f.Upstreams, r.Attempts[i].Upstream)
	}
	return f
}

// look judges the modes, and logs those that changed.
func (s *served) look(now time.Time, o quality.Moment) {
	s.mu.Lock()
	changes := s.machine.Advance(now, o)
	s.mu.Unlock()
	for _, c := range changes {
		if c.Minor() {
			continue
		}
		fields := []zap.Field{zap.String("from", string(c.From)), zap.String("to", string(c.To)), zap.String("cause", c.Cause)}
		if c.Upstream != "" {
			fields = append(fields, zap.String("upstream", c.Upstream))
		}
		switch c.To {
		case quality.Flat:
			s.log.Info("jobs are served alike again", fields...)
		case quality.Growing:
			s.log.Warn("more work comes than is done: each job waits longer than the one before", fields...)
		case quality.Losing:
			s.log.Warn("jobs fail or are lost: submitters get errors, or their results in part or not at all", fields...)
		}
	}
}
