package main

import (
	"time"

	"go.uber.org/zap"

	"example.org/pilotfish/internal/discovery"
	"example.org/pilotfish/internal/metrics"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
)

// sinks take in the record of each job that has ended.
func (s *sidecar) sinks() []func(*record.Job) {
	return []func(*record.Job){
		s.served.ended,
		s.metrics.Ended,
		s.journal.Ended,
		func(r *record.Job) { s.current.Load().tracing.Ended(r) },
		func(r *record.Job) { s.jobs.Write(s.current.Load().cfg.Log, r) },
	}
}

// live is what a scrape shows of the moment.
func (s *sidecar) live(now time.Time) metrics.Live {
	g := s.current.Load()
	d := g.discovery.Status()
	_, waiting := s.balancer.Counts()
	limited, queued := s.balancer.Queue(now)
	live := metrics.Live{
		Limited: limited,
		Bounds: []metrics.Bound{
			{Name: "body_bytes", Used: g.budget.Used(), Limit: g.bodies},
			{Name: "queue_bytes", Used: queued, Limit: int64(s.queue(&g.cfg).Bytes)},
			{Name: "queue_jobs", Used: int64(waiting), Limit: int64(g.cfg.Queue.Jobs)},
		},
		LogLinesLost: s.log.Lost(),
		Discovery:    metrics.Discovery{Age: -1, Applied: d.Applied, Refused: d.Refused, Failed: d.Failed},
	}
	if g.tls != nil {
		live.CertificateExpires = g.tls.Expires()
	}
	if serving := s.serving.Load(); serving != nil {
		live.Bounds = append(live.Bounds, connections("jobs", serving.jobs), connections("admin", serving.admin))
		if s.first.Mesh.Listen != "" {
			live.Bounds = append(live.Bounds, connections("mesh", serving.mesh))
		}
	}
	states := s.balancer.States()
	live.Panic = pool.Panic(states)
	s.served.mu.Lock()
	live.Fleet, live.Upstreams = s.served.machine.Status(), s.served.machine.Upstreams(now, states)
	live.Capacity = s.served.machine.Advice(now, states)
	s.served.mu.Unlock()
	if !d.BelievedAt.IsZero() {
		live.Discovery.Age = now.Sub(d.BelievedAt)
	}
	return live
}

// connections is what is open at a port.
func connections(port string, of interface{ Conns() (open, most int) }) metrics.Bound {
	open, most := of.Conns()
	return metrics.Bound{Name: port + "_connections", Used: int64(open), Limit: int64(most)}
}

// logDiscovery says what is wrong with discovery, or that nothing is any more.
func (s *sidecar) logDiscovery(st discovery.Status) {
	if st.Trouble == "" {
		s.log.Info("discovery works again", zap.String("source", st.Source), zap.Int("upstreams", st.Upstreams))
		return
	}
	s.log.Warn("discovery: "+st.Trouble, zap.String("source", st.Source), zap.Int("upstreams", st.Upstreams))
}
