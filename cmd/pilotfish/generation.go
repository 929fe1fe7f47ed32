package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"

	"go.uber.org/zap"

	"example.org/pilotfish/internal/config"
	"example.org/pilotfish/internal/discovery"
	"example.org/pilotfish/internal/files"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/logging"
	"example.org/pilotfish/internal/mesh"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/proxy"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/internal/report"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/internal/tracing"
)

// generation is what a reload replaces as a whole: how jobs are read and
// attempted, who is asked for upstreams, and who for reports of them.
type generation struct {
	cfg       config.Config
	guard     proxy.Guard // of the admin port
	proxy     *proxy.Proxy
	mesh      *mesh.Filter
	budget    *intake.Budget
	discovery *discovery.Discovery
	reports   reports
	tracing   *tracing.Tracer // nil traces nothing
	dial      files.Dial      // connects to upstreams
	stop      func()          // ends and joins what start began
}

// newGeneration builds a generation that takes over from the one before, if
// there is one; nothing runs yet.
func (s *sidecar) newGeneration(cfg *config.Config, before *generation) (*generation, error) {
	g := &generation{cfg: *cfg, guard: proxy.NewGuard(cfg.Hosts), budget: intake.NewBudget(int64(cfg.Job.Budget)), stop: func() {}}
	var err error
	if g.dial, err = s.dialer("upstream_tls", cfg.UpstreamTLS); err != nil {
		return nil, err
	}
	if _, _, err := adminToken(cfg); err != nil {
		return nil, err
	}
	reader, err := intake.NewReader(cfg.Job)
	if err != nil {
		return nil, err
	}
	if g.tracing, err = tracing.New(tracing.Config{Settings: cfg.Tracing, Version: version, Failed: func(err error) {
		s.log.Warn("spans are lost: the collector does not take them", zap.String("endpoint", cfg.Tracing.Endpoint), zap.Error(err))
	}}); err != nil {
		return nil, err
	}
	var mark func(http.Header) *record.Span
	if g.tracing != nil {
		mark = g.tracing.Begin
	}
	g.proxy, err = proxy.New(proxy.Config{
		Settings: cfg.Stream, Hosts: cfg.Hosts,
		Reader: reader, Budget: g.budget, MaxBody: int64(cfg.Job.MaxBody),
		Claimer: s.balancer, Hint: cfg.Reports.Hint, AskLoad: cfg.Reports.ORCA.Ask, AskBegun: cfg.SecondThoughts.Late > 0, Observe: s.observe, Dial: g.dial, Trace: mark,
	})
	if err != nil {
		return nil, err
	}
	g.mesh, err = mesh.New(mesh.Config{
		Reader: reader, Budget: g.budget, Claimer: s.balancer, Observe: s.observe,
		Hint: cfg.Reports.Hint, AskLoad: cfg.Reports.ORCA.Ask, Trace: mark,
		MaxBody:        int64(cfg.Job.MaxBody),
		ExplainHeaders: cfg.Stream.ExplainHeaders,
	})
	if err != nil {
		return nil, err
	}
	found := discovery.Config{Settings: cfg.Discovery, Rand: newRand(), Self: s.self, Observe: s.logDiscovery}
	if before != nil && reflect.DeepEqual(cfg.Discovery, before.cfg.Discovery) {
		found.Last = upstreams(s.balancer.States())
	}
	if g.discovery, err = discovery.New(found); err != nil {
		return nil, err
	}
	g.reports, err = s.newReports(cfg.Reports, g.dial)
	return g, err
}

// dialer connects by TCP, and over it by TLS if key is there.
func (s *sidecar) dialer(key string, secure *settings.TLS) (files.Dial, error) {
	dial := files.Dial(proxy.DialTCP())
	if secure == nil {
		return dial, nil
	}
	t, err := files.NewTLS(*secure, func(err error) {
		if err != nil {
			s.log.Error("changed files cannot be used: connections are made with what was read before", zap.String("key", key), zap.Error(err))
			return
		}
		s.log.Info("changed files are used for new connections", zap.String("key", key))
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return t.Over(dial), nil
}

// dialUpstream connects to an upstream by the settings of the current generation.
func (s *sidecar) dialUpstream(ctx context.Context, network, address string) (net.Conn, error) {
	return s.current.Load().dial(ctx, network, address)
}

// adminToken is what requests to the admin port must show, if wanted.
func adminToken(cfg *config.Config) (token string, wanted bool, err error) {
	if cfg.AdminTokenFile == "" {
		return "", false, nil
	}
	if token, err = files.Token(cfg.AdminTokenFile); err != nil {
		err = fmt.Errorf("admin_token_file: %w", err)
	}
	return token, true, err
}

// reports is a source of reports of the upstreams that it is told to follow.
type reports interface {
	Follow(addresses []string)
	Run(ctx context.Context)
}

func (s *sidecar) newReports(settings report.Settings, dial files.Dial) (reports, error) {
	c := report.Config{
		Settings: settings, Dial: dial, Rand: newRand(), Report: s.balancer.Report, Listing: s.balancer.Listing,
		Unreported: s.balancer.ReportFailed,
		Failed: func(address string, err error) {
			s.metrics.ReportFailed(address)
			s.journal.ReportFailed(address, err)
			s.log.Debug("report", zap.String("upstream", address), zap.Error(err))
		},
	}
	if settings.Source == report.FromPrometheus {
		if server := settings.Prometheus; server != nil && strings.HasPrefix(server.URL, "https:") {
			var err error
			if c.DialServer, err = s.dialer("reports.prometheus.tls", &server.TLS); err != nil {
				return nil, err
			}
		}
		return report.NewPrometheus(c)
	}
	return report.NewPoller(c)
}

// ask makes an upstream report at once, where upstreams are asked one by one.
func (s *sidecar) ask(address string) {
	if poller, ok := s.current.Load().reports.(*report.Poller); ok {
		poller.Ask(address)
	}
}

// start runs the current generation, and those that take its place, until ctx
// ends or stop is called.
func (s *sidecar) start(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = ctx
	s.startGeneration(s.current.Load())
}

// stop ends the current generation and waits for it.
func (s *sidecar) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = nil
	s.current.Load().stop()
}

// startGeneration runs g until it is stopped; s.mu must be held.
func (s *sidecar) startGeneration(g *generation) {
	ctx, cancel := context.WithCancel(s.running)
	g.reports.Follow(addresses(upstreams(s.balancer.States()))) // discovery may have nothing to say for long
	sets := make(chan []pool.Upstream)
	var wg sync.WaitGroup
	wg.Go(func() { g.reports.Run(ctx) })
	if err := g.tracing.Open(); err != nil {
		s.log.Error("jobs are not traced", zap.Error(err))
	}
	wg.Go(func() { g.tracing.Run(ctx) })
	wg.Go(func() {
		if err := g.discovery.Run(ctx, sets); err != nil && ctx.Err() == nil {
			s.log.Error("discovery ended", zap.Error(err))
		}
	})
	wg.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case set := <-sets:
				s.balancer.Set(set)
				s.prewarm.Follow(set)
				g.reports.Follow(addresses(set))
			}
		}
	})
	g.stop = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
		g.proxy.Close()
	})
}

// buildable reports what only building the parts can tell of a configuration.
func buildable(cfg *config.Config) error {
	log, err := logging.New(io.Discard, cfg.Log.Level)
	if err != nil {
		return err
	}
	own := slices.DeleteFunc([]string{cfg.Listen, cfg.Admin}, func(address string) bool {
		_, local := settings.UnixPath(address)
		return local || strings.HasSuffix(address, ":0") // the system will choose one
	})
	_, err = newSidecar(cfg, own, log)
	return err
}

func upstreams(states []pool.State) []pool.Upstream {
	set := make([]pool.Upstream, len(states))
	for i := range states {
		set[i] = states[i].Upstream
	}
	return set
}

func addresses(set []pool.Upstream) []string {
	list := make([]string, len(set))
	for i := range set {
		list[i] = set[i].Address
	}
	return list
}
