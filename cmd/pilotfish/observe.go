package main

import (
	"time"

	"go.uber.org/zap"

	"example.org/pilotfish/internal/discovery"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/metrics"
	"example.org/pilotfish/internal/prewarm"
	"example.org/pilotfish/internal/quality"
	"example.org/pilotfish/internal/record"
)

// observe turns a job's record into its log line and its metrics.
func (s *sidecar) observe(r *record.Job) {
	var room [2]quality.Attempt // most jobs have no more attempts
	figures := r.Quality(room[:0])
	now := r.Arrived.Add(r.Total)
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
	s.metrics.BytesPassed(r.Body, r.Bytes)
	for i := range r.Attempts {
		s.metrics.AttemptDone(attempted(r, i))
	}
	s.journal.Ended(r)
	s.capture.Add(r)
	s.current.Load().tracing.Ended(r)
	s.jobs.Write(now, s.current.Load().cfg.Log, r)
}

// attempted is one attempt of a job, as metrics count it. The response is the last one's.
func attempted(r *record.Job, i int) metrics.Attempt {
	of := &r.Attempts[i]
	a := metrics.Attempt{
		Upstream: of.Upstream, Outcome: of.Outcome, Believed: of.Cache, Expected: of.Cost.Wait,
		FirstByte: -1, LastByte: -1, Hint: of.Hint,
	}
	if i == len(r.Attempts)-1 && r.Completeness != intake.Absent {
		a.FirstByte = r.TTFB - of.Start
	}
	if i == len(r.Attempts)-1 && r.Completeness == intake.Complete {
		a.LastByte = r.Total - of.Start
	}
	return a
}

// live is what a scrape shows of the moment.
func (s *sidecar) live(now time.Time) metrics.Live {
	g := s.current.Load()
	d := g.discovery.Status()
	fleet, modes := s.served.statuses()
	live := metrics.Live{
		Upstreams:  s.balancer.States(),
		Fleet:      fleet,
		Quality:    modes,
		Bodies:     metrics.Bounded{Taken: g.budget.Used(), Most: int64(g.cfg.Job.Budget)},
		QueueBytes: metrics.Bounded{Taken: s.balancer.WaitingBytes(), Most: int64(g.cfg.Queue.Bytes)},
		QueueJobs:  g.cfg.Queue.Jobs,
		Idle:       g.proxy.Idle(),
		Limited:    s.balancer.Limited(),
		HeadBytes:  metrics.Bounded{Taken: s.heads.Used(), Most: int64(s.first.Submitters.Heads)}, HeadsRefused: s.heads.Refused(),
		Discovery: metrics.Discovery{Age: -1, Applied: d.Applied, Refused: d.Refused, Failed: d.Failed},
	}
	if serving := s.serving.Load(); serving != nil {
		live.Connections = map[string]metrics.Bounded{"jobs": connections(serving.jobs), "admin": connections(serving.admin)}
		if s.first.Mesh.Listen != "" {
			live.Connections["mesh"] = connections(serving.mesh)
		}
	}
	if advice, err := s.console.capacity(live.Upstreams); err == nil {
		live.Capacity = &advice
	}
	live.Capture.Written, live.Capture.Lost = s.capture.Counts()
	if !d.BelievedAt.IsZero() {
		live.Discovery.Age = now.Sub(d.BelievedAt)
	}
	return live
}

func connections(of interface{ Conns() (open, most int) }) metrics.Bounded {
	open, most := of.Conns()
	return metrics.Bounded{Taken: int64(open), Most: int64(most)}
}

// logPrefetch writes how a prefetch ended.
func (s *sidecar) logPrefetch(f prewarm.Prefetch, err error) {
	s.metrics.Prewarmed(err == nil)
	line := s.log.With(zap.String("project", f.Project), zap.String("upstream", f.Upstream), zap.String("leaving", f.Leaving))
	if err != nil {
		line.Warn("prewarm", zap.Error(err))
		return
	}
	line.Info("prewarm")
}

// logDiscovery warns of what is wrong with a reply of discovery's source.
func (s *sidecar) logDiscovery(st discovery.Status) {
	var wrong []zap.Field
	if st.Err != nil {
		wrong = append(wrong, zap.Error(st.Err))
	}
	if st.Doubt != "" {
		wrong = append(wrong, zap.String("doubt", st.Doubt))
	}
	if st.Flaw != nil {
		wrong = append(wrong, zap.NamedError("flaw", st.Flaw))
	}
	if st.SnapshotErr != nil {
		wrong = append(wrong, zap.NamedError("snapshot", st.SnapshotErr))
	}
	if len(wrong) > 0 {
		s.log.Warn("discovery", append(wrong, zap.String("source", st.Source), zap.Int("upstreams", st.Upstreams))...)
	}
}
