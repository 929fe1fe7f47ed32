package main

import (
	"cmp"
	"errors"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"example.org/pilotfish/internal/admin"
	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/discovery"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/files"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/logging"
	"example.org/pilotfish/internal/metrics"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/internal/tracing"
)

const (
	shownFailures = 50
	shownProjects = 20
	shownOpen     = 20
)

// served is the quality of service: the machine of package quality and the last
// failures, under one lock.
type served struct {
	log *zap.Logger

	mu       sync.Mutex
	machine  *quality.Machine
	failures []map[string]any // lines of the log, the latest last
	landings admin.Landings
}

func newServed(log *zap.Logger) *served { return &served{log: log, machine: quality.New(time.Now())} }

// began counts a response that has started.
func (s *served) began(now time.Time, j *dispatch.Job, c pool.Choice, hint *pool.Hint) {
	if j.Prefetch { // nobody waits for a prefetch
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine.Began(now, j, c, hint)
}

// ended counts an ended job.
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

// look updates the modes, and logs changes.
func (s *served) look(now time.Time, o quality.Moment) {
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

// now returns the present state for the page.
func (s *sidecar) now() admin.Now {
	states, now := s.balancer.States(), time.Now()
	n := admin.Now{At: now, Projects: s.balancer.Projects(now, shownProjects), Open: s.balancer.Open(shownOpen), Failures: []map[string]any{}}
	n.InFlight, n.Waiting = s.balancer.Counts()
	if err := s.refusal(); err != nil {
		n.NotReady = err.Error()
	}
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

// events returns the last events.
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

// points returns the points of the last hour.
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
	switch {
	case s.stopping.Load():
		return errors.New("shutting down")
	case !s.balancer.Ready():
		return errors.New(cmp.Or(s.current.Load().discovery.Status().Trouble, "no upstreams are known yet"))
	}
	return nil
}

// sinks returns the receivers of the record of each ended job.
func (s *sidecar) sinks() []func(*record.Job) {
	return []func(*record.Job){
		func(r *record.Job) { s.served.ended(s.current.Load().cfg.Quality, r) },
		s.metrics.Ended,
		s.journal.Ended,
		tracing.Ended,
		func(r *record.Job) { s.log.Job(s.current.Load().cfg.Log, r) },
	}
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

// logDiscovery logs trouble of discovery, or its end.
func (s *sidecar) logDiscovery(st discovery.Status) {
	if st.Trouble == "" {
		s.log.Info("discovery works again", zap.String("source", st.Source), zap.Int("upstreams", st.Upstreams))
		return
	}
	s.log.Warn("discovery: "+st.Trouble, zap.String("source", st.Source), zap.Int("upstreams", st.Upstreams))
}
