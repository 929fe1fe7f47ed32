package main

import (
	"context"
	"slices"
	"strings"
	"sync"

	"go.uber.org/zap"

	"pilotfish/internal/config"
	"pilotfish/internal/discovery"
	"pilotfish/internal/job"
	"pilotfish/internal/pool"
	"pilotfish/internal/proxy"
	"pilotfish/internal/report"
)

// generation is what a reload replaces as a whole: how jobs are read and
// attempted, who is asked for upstreams, and who for reports of them.
type generation struct {
	proxy     *proxy.Proxy
	budget    *job.Budget
	discovery *discovery.Discovery
	reports   reports
	stop      func() // ends and joins what start began
}

func (s *sidecar) newGeneration(cfg *config.Config) (*generation, error) {
	g := &generation{budget: job.NewBudget(int64(cfg.Job.Budget)), stop: func() {}}
	reader, err := job.NewReader(job.Fields{
		Project: cfg.Job.Project, Priority: cfg.Job.Priority, Session: cfg.Job.Session,
		Queue: cfg.Job.Queue, Evaluate: cfg.Job.Evaluate, Stream: cfg.Job.Stream,
	})
	if err != nil {
		return nil, err
	}
	g.proxy, err = proxy.New(proxy.Config{
		Reader: reader, Budget: g.budget, Claim: s.claim, Observe: s.observe,
		Hint:     report.ParseHint,
		Hosts:    cfg.Hosts,
		MaxBody:  int64(cfg.Job.MaxBody),
		Attempts: cfg.Retry.Attempts, RetryBudget: cfg.Retry.Budget,
		ConnectTimeout: cfg.Retry.ConnectTimeout, FirstByte: cfg.Retry.FirstByte,
		Idle: cfg.Stream.Idle, ExplainHeaders: cfg.Stream.ExplainHeaders,
	})
	if err != nil {
		return nil, err
	}
	if g.discovery, err = discovery.New(s.discoveryConfig(cfg), stream()); err != nil {
		return nil, err
	}
	g.reports, err = s.newReports(&cfg.Reports)
	return g, err
}

func (s *sidecar) discoveryConfig(cfg *config.Config) discovery.Config {
	d := &cfg.Discovery
	c := discovery.Config{
		Static: d.Static,
		Own:    s.own,
		Observe: func(st discovery.Status) {
			if st.Err != nil {
				s.log.Warn("discovery", zap.String("source", st.Source), zap.Int("upstreams", st.Upstreams), zap.Error(st.Err))
			} else if st.Flaw != nil {
				s.log.Warn("discovery", zap.String("source", st.Source), zap.Int("upstreams", st.Upstreams), zap.NamedError("flaw", st.Flaw))
			}
		},
	}
	if d.File != nil {
		c.File = &discovery.FileConfig{Path: d.File.Path, Interval: d.File.Interval}
	}
	if d.DNS != nil {
		c.DNS = &discovery.DNSConfig{Name: d.DNS.Name, Record: d.DNS.Record, Port: d.DNS.Port, Interval: d.DNS.Interval}
	}
	if k := d.Consul; k != nil {
		c.Guard = discovery.GuardConfig{HoldEmpty: k.KeepLast, HoldDrop: k.KeepLast / 3}
		c.Snapshot = k.Snapshot
		c.Consul = &discovery.ConsulConfig{
			Address: k.Address, Service: k.Service, Tag: k.Tag, Datacenter: k.Datacenter, Namespace: k.Namespace,
			TokenFile: k.TokenFile, TLS: discovery.TLSConfig(k.TLS), Stale: k.Stale, Wait: k.Wait,
		}
	}
	return c
}

// start runs the current generation until ctx ends or it is stopped.
func (s *sidecar) start(ctx context.Context) {
	g := s.current.Load()
	s.running = ctx
	ctx, cancel := context.WithCancel(ctx)
	sets := make(chan []pool.Upstream)
	var wg sync.WaitGroup
	wg.Go(func() { g.reports.Run(ctx) })
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
				s.prewarm.follow(set)
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

// reload puts a new configuration in the place of the running one, whole. The
// pool's state and the open jobs are untouched. What needs a restart is told.
func (s *sidecar) reload(old, cfg *config.Config) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.newGeneration(cfg)
	if err != nil {
		return err
	}
	before := s.current.Swap(g)
	before.stop()
	s.start(s.running)
	if err := s.level.UnmarshalText([]byte(cfg.Log.Level)); err != nil {
		return err
	}
	for _, fixed := range []struct {
		key     string
		changed bool
	}{
		{"listen", old.Listen != cfg.Listen},
		{"admin", old.Admin != cfg.Admin},
		{"reuse_port", old.ReusePort != cfg.ReusePort},
		{"selection", old.Selection != cfg.Selection},
		{"overload", old.Overload != cfg.Overload},
		{"breaker", old.Breaker != cfg.Breaker},
		{"queue", old.Queue != cfg.Queue},
		{"prewarm", old.Prewarm != cfg.Prewarm},
		{"debug", old.Debug != cfg.Debug},
	} {
		if fixed.changed {
			s.log.Warn("a change waits for a restart", zap.String("key", fixed.key))
		}
	}
	return nil
}

func addresses(set []pool.Upstream) []string {
	list := make([]string, len(set))
	for i := range set {
		list[i] = set[i].Address
	}
	return list
}

// buildable reports what only building the parts can tell of a configuration.
func buildable(cfg *config.Config) error {
	log, level, err := newLogger(discard{}, cfg.Log.Level)
	if err != nil {
		return err
	}
	own := slices.DeleteFunc([]string{cfg.Listen, cfg.Admin}, func(address string) bool {
		return strings.HasSuffix(address, ":0") // the system will choose one
	})
	_, err = newSidecar(cfg, own, log, level)
	return err
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
