package main

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"time"

	"example.org/pilotfish/internal/admin"
	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/files"
	"example.org/pilotfish/internal/logging"
	"example.org/pilotfish/internal/metrics"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
	"example.org/pilotfish/internal/settings"
)

const (
	shownProjects = 20
	shownOpen     = 20
)

// now returns the present state for the page.
func (s *sidecar) now() admin.Now {
	states, now := s.balancer.States(), time.Now()
	n := admin.Now{At: now, Projects: s.balancer.Projects(now, shownProjects), Open: s.balancer.Open(shownOpen), Failures: []map[string]any{}}
	n.InFlight, n.Waiting = s.balancer.Counts()
	if err := s.refusal(); err != nil {
		n.NotReady = err.Error()
	}
	n.Warnings = s.warnings(n.NotReady)
	n.Shadow = s.current.Load().cfg.Selection.Shadow
	_, n.Events = s.log.Events.Last()
	s.served.mu.Lock()
	keys := s.served.landings.Keys()
	s.served.mu.Unlock()
	holders := s.balancer.Holders(keys)
	s.served.mu.Lock()
	defer s.served.mu.Unlock()
	n.Landings, n.Holdings = s.served.landings.Last(), s.served.landings.Holdings(holders)
	n.View = s.view(now, states)
	n.Failures = append(n.Failures, s.served.failures...)
	slices.Reverse(n.Failures)
	return n
}

func (s *sidecar) events() []logging.Event {
	events, _ := s.log.Events.Last()
	return events
}

// view returns the quality of service, given the upstreams' states; the lock of served must be held.
func (s *sidecar) view(now time.Time, states []pool.State) quality.View {
	v := s.served.machine.View(now, states)
	if v.Capacity != nil {
		v.Capacity.Plan(s.current.Load().cfg.Quality)
	}
	return v
}

func (s *sidecar) points() []quality.Point {
	s.served.mu.Lock()
	defer s.served.mu.Unlock()
	return s.served.machine.Points(time.Now())
}

func (s *sidecar) about() admin.About {
	cfg := &s.current.Load().cfg
	host, _ := os.Hostname() // "" is unknown
	return admin.About{
		Version: cli.Version(version), Go: runtime.Version(), Host: host, Ports: s.self, Started: s.started,
		Write: cfg.AdminWrite, Configuration: string(cli.Encode(cfg)),
	}
}

// refusal returns why the sidecar is not ready; nil if it is.
func (s *sidecar) refusal() error {
	if s.stopping.Load() {
		return errors.New("shutting down")
	}
	if why := s.noUpstream(); why != "" {
		return errors.New(why)
	}
	return nil
}

// warnings returns the reasons why the configuration file or the list of upstreams is rejected, except the text in known,
// which the caller displays itself.
func (s *sidecar) warnings(known string) (all []string) {
	if r := s.refused.Load(); r != nil {
		all = append(all, settings.Cut(r.Error(), settings.MaxText))
	}
	if text := s.current.Load().discovery.Status().Text(); text != "" && text != known {
		all = append(all, text)
	}
	return all
}

// live returns the present state for a scrape.
func (s *sidecar) live(now time.Time) metrics.Live {
	g := s.current.Load()
	d := g.discovery.Status()
	_, waiting := s.balancer.Counts()
	limited, queued := s.balancer.Queue(now)
	live := metrics.Live{
		Limited: limited,
		Bounds: []metrics.Bound{
			{Name: "body_bytes", Used: s.budget.Used(), Limit: s.budget.All()},
			{Name: "queue_bytes", Used: queued, Limit: int64(s.queue(&g.cfg).Bytes)},
			{Name: "queue_jobs", Used: int64(waiting), Limit: int64(g.cfg.Queue.Jobs)},
			connections("jobs", s.servers.jobs), connections("admin", s.servers.admin),
		},
		Planned:      s.planned,
		LogLinesLost: s.log.Lost(),
		Discovery:    metrics.Discovery{Age: -1, Applied: d.Applied, Refused: d.Refused, Failed: d.Failed},
	}
	for _, t := range []*files.TLS{g.tls, s.shown} {
		if t == nil {
			continue
		}
		if at := t.Expires(); live.CertificateExpires.IsZero() || !at.IsZero() && at.Before(live.CertificateExpires) {
			live.CertificateExpires = at
		}
	}
	if s.first.Mesh.Listen != "" {
		live.Bounds = append(live.Bounds, connections("mesh", s.servers.mesh))
	}
	states := s.balancer.States()
	s.served.mu.Lock()
	live.View = s.view(now, states)
	s.served.mu.Unlock()
	if !d.AcceptedAt.IsZero() {
		live.Discovery.Age = now.Sub(d.AcceptedAt)
	}
	return live
}

// connections returns the open connections of a port as a bound.
func connections(port string, of interface{ Conns() (open, most int) }) metrics.Bound {
	open, most := of.Conns()
	return metrics.Bound{Name: port + "_connections", Used: int64(open), Limit: int64(most)}
}
