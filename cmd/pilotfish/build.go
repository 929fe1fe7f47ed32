package main

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/breaker"
	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/config"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/logging"
	"example.org/pilotfish/internal/memory"
	"example.org/pilotfish/internal/metrics"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/tracing"
)

// newSidecar builds everything; nothing runs yet. self are the sidecar's own
// addresses, so that it never sends a job to itself.
func newSidecar(cfg *config.Config, self []string, from source, log *logging.Log) (*sidecar, error) {
	s := &sidecar{
		self: self, first: *cfg, from: from, log: log, journal: logging.NewJournal(log.Logger),
		served: newServed(log.Logger), memory: memory.New(), started: time.Now(),
	}
	s.written = logging.NewBodies(cfg.Log, func(err error) {
		log.Error("bodies are no longer written to log.bodies", zap.Error(err))
	})
	s.metrics = metrics.New(cfg.Metrics, version, cli.Commit())
	s.budget = intake.NewBudget(s.bodies(cfg))
	var err error
	if s.balancer, err = s.newBalancer(cfg); err != nil {
		return nil, err
	}
	if s.tracing, err = tracing.New(cfg.Tracing, version, func(err error) {
		log.Warn("spans are lost: the collector does not take them", zap.String("endpoint", cfg.Tracing.Endpoint), zap.Error(err))
	}); err != nil {
		return nil, err
	}
	g, err := s.newGeneration(cfg, nil)
	if err != nil {
		return nil, err
	}
	s.current.Store(g)
	if s.servers, err = s.newServers(); err != nil {
		return nil, err
	}
	s.metrics.SetSource(s.live)
	return s, nil
}

// newBalancer builds the pool with its breakers, the dispatcher, and the lock around them.
func (s *sidecar) newBalancer(cfg *config.Config) (*balancer.Balancer, error) {
	settings, err := poolSettings(cfg)
	if err != nil {
		return nil, err
	}
	p, err := pool.New(pool.Config{Settings: settings, Gate: breaker.New, Rand: newRand()})
	if err != nil {
		return nil, err
	}
	d, err := dispatch.New(dispatch.Config{Pool: p, Rand: newRand(), Retry: cfg.Retry, Queue: s.queue(cfg), Projects: cfg.Projects})
	if err != nil {
		return nil, err
	}
	return balancer.New(d, balancer.Hooks{
		Queued:   s.metrics.QueueEntered,
		Left:     s.metrics.QueueLeft,
		Answered: s.served.began,
		Probe: func(ctx context.Context, addresses []string, project string, timeout time.Duration) []*pool.Hint {
			return s.current.Load().reports.Probe(ctx, addresses, project, timeout)
		},
		Withdraw: func(address, id string) bool {
			g := s.current.Load()
			accepted := g.reports.Withdraw(address, g.cfg.Job.WithdrawPath, id)
			s.metrics.Withdrawn(accepted)
			return accepted
		},
		PollNow: func(address string) { s.current.Load().reports.PollNow(address) },
		Joined: func(addresses []string) {
			many := s.metrics.Joined(addresses)
			s.log.Info("upstreams joined", zap.Strings("upstreams", addresses))
			if many {
				s.log.Warn("more than 1,000 upstreams: a scrape takes about 0.1 s of CPU time for each 1,000; set metrics.upstreams to summary for an eighth of the series")
			}
		},
		Gone: func(addresses []string) {
			s.metrics.Left(addresses)
			s.log.Info("upstreams left", zap.Strings("upstreams", addresses))
		},
	}), nil
}

// buildable returns errors of a configuration that are found only by building the sidecar.
func buildable(cfg *config.Config) error {
	log, err := logging.New(io.Discard, cfg.Log.Level)
	if err != nil {
		return err
	}
	own := slices.DeleteFunc([]string{cfg.Listen, cfg.Admin}, func(address string) bool {
		return strings.HasSuffix(address, ":0") // the port is not known yet
	})
	_, err = newSidecar(cfg, own, source{}, log)
	return err
}
