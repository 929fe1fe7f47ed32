package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"go.uber.org/zap"

	"example.org/pilotfish/internal/admin"
	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/discovery"
	"example.org/pilotfish/internal/metrics"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/internal/tracing"
)

// now is what the page shows of the moment.
func (s *sidecar) now() admin.Now {
	states, now := s.balancer.States(), time.Now()
	n := admin.Now{At: now, Panic: pool.Panic(states), Projects: s.balancer.Projects(now, shownProjects), Open: s.balancer.Open(shownOpen)}
	n.InFlight, n.Waiting = s.balancer.Counts()
	if err := s.refusal(); err != nil {
		n.NotReady = err.Error()
	}
	s.served.mu.Lock()
	defer s.served.mu.Unlock()
	n.Fleet, n.Upstreams = s.served.machine.Served(now), s.served.machine.Upstreams(now, states)
	n.Capacity = s.served.machine.Advice(now, states)
	n.Failures = append([]admin.Failure{}, s.served.failures...)
	slices.Reverse(n.Failures)
	return n
}

// points are the last hour.
func (s *sidecar) points() []quality.Point {
	s.served.mu.Lock()
	defer s.served.mu.Unlock()
	return s.served.machine.Points(time.Now())
}

func (s *sidecar) about() (admin.About, error) {
	cfg := s.current.Load().cfg
	text, err := cli.Encode(&cfg)
	host, _ := os.Hostname() // "" is shown as no name
	return admin.About{
		Version: cli.Version(version), Go: runtime.Version(), Host: host, Ports: s.self, Started: s.started,
		Write: cfg.AdminWrite, Configuration: string(text),
	}, err
}

// refusal is why the sidecar does not want jobs; nil if it does.
func (s *sidecar) refusal() error {
	switch {
	case s.stopping.Load():
		return errors.New("shutting down")
	case !s.balancer.Ready():
		return errors.New("no upstreams are known yet")
	}
	return nil
}

// ready says how many upstreams are eligible, or why the sidecar does not want jobs.
func (s *sidecar) ready() (words string, err error) {
	if err := s.refusal(); err != nil {
		return "", err
	}
	eligible, states := 0, s.balancer.States()
	for i := range states {
		if states[i].Eligible {
			eligible++
		}
	}
	return fmt.Sprintf("%d of %d upstreams are eligible", eligible, len(states)), nil
}

// sinks take in the record of each job that has ended.
func (s *sidecar) sinks() []func(*record.Job) {
	return []func(*record.Job){
		s.served.ended,
		s.metrics.Ended,
		s.journal.Ended,
		tracing.Ended,
		func(r *record.Job) { s.log.Job(s.current.Load().cfg.Log, r) },
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
