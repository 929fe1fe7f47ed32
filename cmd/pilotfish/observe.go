package main

import (
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/metrics"
	"example.org/pilotfish/internal/record"
)

// observe turns a job's record into its log line and its metrics.
func (s *sidecar) observe(r *record.Job) {
	figures := r.Quality()
	now := time.Now()
	s.served.ended(now, &figures)
	s.console.ended(now, r)
	if times, ok := figures.Stretch(); ok {
		s.metrics.JobStretched(figures.Priority, times)
	}
	s.metrics.JobDone(r.Facts.Priority, r.Read, r.Outcome, r.Completeness, r.TTFB, r.Total)
	if r.Outcome == intake.Shed {
		s.metrics.JobShed(r.Facts.Priority, r.Shedding)
	}
	if r.RetryRefused {
		s.metrics.RetryRefused()
	}
	if r.Unkept {
		s.metrics.ReplayDisabled()
	}
	for i := range r.Attempts {
		s.metrics.AttemptDone(r.Attempts[i].Outcome)
	}
	if n := len(r.Attempts); n > 0 && r.Outcome == intake.Answered {
		s.prewarm.Note(r.Attempts[n-1].Upstream, r.Facts.Key, r.Facts.Project)
	}
	s.journal.ended(r)
	s.capture.Add(r)
	s.jobs.write(s.current.Load().cfg.Log, r)
}

// live is what a scrape shows of the moment.
func (s *sidecar) live(now time.Time) metrics.Live {
	g := s.current.Load()
	d := g.discovery.Status()
	fleet, modes := s.served.statuses()
	live := metrics.Live{
		Upstreams: s.balancer.States(),
		Fleet:     fleet,
		Quality:   modes,
		BodyBytes: g.budget.Used(),
		Limited:   s.balancer.Limited(),
		Discovery: metrics.Discovery{Age: -1, Applied: d.Applied, Refused: d.Refused, Failed: d.Failed},
	}
	live.Capture.Written, live.Capture.Lost = s.capture.Counts()
	if !d.BelievedAt.IsZero() {
		live.Discovery.Age = now.Sub(d.BelievedAt)
	}
	return live
}
