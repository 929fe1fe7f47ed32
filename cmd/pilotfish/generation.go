package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"sync"

	"go.uber.org/zap"

	"example.org/pilotfish/internal/config"
	"example.org/pilotfish/internal/discovery"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/files"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/job"
	"example.org/pilotfish/internal/mesh"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/proxy"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/internal/report"
	"example.org/pilotfish/internal/report/events"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/internal/tracing"
)

// newGeneration builds the successor of the generation before, which is nil at
// start-up. It starts nothing.
func (s *sidecar) newGeneration(cfg *config.Config, before *generation) (*generation, error) {
	g := &generation{cfg: *cfg, stop: func() {}}
	var err error
	lookups := new(proxy.Lookups)
	dial := proxy.Elsewhere(s.self, lookups.Over(proxy.DialUpstream), func(address string) {
		if g.discovery.LeadsHere(address) {
			s.log.Warn("an upstream is this sidecar itself: it is left out", zap.String("upstream", address))
		}
	})
	if cfg.UpstreamTLS != nil {
		if g.tls, err = s.newTLS("upstream_tls", *cfg.UpstreamTLS); err != nil {
			return nil, err
		}
		dial = g.tls.Over(dial)
	}
	if g.reader, err = intake.NewReader(cfg.Job); err != nil {
		return nil, err
	}
	jobs := job.Config{
		Reader: g.reader, Budget: s.budget, MaxBody: int64(cfg.Job.MaxBody), Claimer: s.balancer,
		Hint: cfg.Reports.Hint, Found: report.CachedShare, AskLoad: cfg.Reports.AskORCA, Sinks: s.sinks(), ExplainHeaders: cfg.Stream.ExplainHeaders, RequestID: cfg.Stream.RequestID,
		Job: cfg.Job.Canonical(), AttemptFailed: s.journal.AttemptFailed, NoUpstream: s.noUpstream,
		NoHint: s.noHint,
	}
	var follow func(ctx context.Context, address string)
	if cfg.Reports.Events.Port != 0 {
		reader := s.newEvents(cfg, dial)
		follow, jobs.Prompt = reader.Follow, reader.Parts
	}
	if s.written != nil {
		jobs.Body = s.written.Record
	}
	if s.tracing != nil {
		jobs.Trace = s.tracing.Begin
	}
	if g.proxy, err = proxy.New(proxy.Config{Config: jobs, Idle: cfg.Stream.Idle, Hosts: cfg.Hosts, Dial: dial, IsShortage: lookups.IsShortage, Draining: s.stopping.Load}); err != nil {
		return nil, err
	}
	g.jobs = jobs
	if g.mesh, err = mesh.New(jobs); err != nil {
		return nil, err
	}
	found := discovery.Config{Settings: cfg.Discovery, Rand: newRand(), Self: s.self, Changed: s.logDiscovery}
	if before != nil && reflect.DeepEqual(cfg.Discovery, before.cfg.Discovery) {
		found.Last, found.Before = upstreams(s.balancer.States()), before.discovery.Status()
	}
	if g.discovery, err = discovery.New(found); err != nil {
		return nil, err
	}
	if before == nil {
		list, err := g.discovery.Lengths()
		if err = cmp.Or(err, s.balancer.SetLengths(list)); err != nil {
			s.log.Warn("the snapshot's durations of jobs cannot be used: they are learned again", zap.Error(err))
		}
	}
	g.reports = report.New(report.Config{
		Settings: cfg.Reports, Dial: dial, IsShortage: lookups.IsShortage, Rand: newRand(), Reported: reported(s.balancer.States()), Follow: follow,
		Report: s.balancer.Report, Listing: s.balancer.Listing, Unreported: s.balancer.ReportFailed, Checked: s.balancer.Checked,
		Probed: func(address string, err error) {
			s.metrics.Probed(err == nil)
			if err != nil {
				s.noHint(address, err)
				s.log.Debug("probe", zap.String("upstream", address), zap.Error(err))
			}
		},
		Failed: func(address string, never bool, err error) {
			s.journal.ReportFailed(address, never, err)
			if !never {
				s.metrics.ReportFailed(address)
				s.log.Debug("report", zap.String("upstream", address), zap.Error(err))
			}
		},
	})
	return g, nil
}

// noHint records why a response has no load hint, if its load header is invalid.
func (s *sidecar) noHint(address string, err error) {
	if fault, ok := errors.AsType[*report.HintError](err); ok {
		s.metrics.HintInvalid(address)
		s.journal.HintInvalid(address, fault)
	}
}

// newEvents builds what reads the events of KV caches.
func (s *sidecar) newEvents(cfg *config.Config, dial func(ctx context.Context, network, address string) (net.Conn, error)) *events.Reader {
	return events.New(events.Config{
		Settings: cfg.Reports.Events, Dial: dial, Changed: s.balancer.CacheChanged, Counted: s.metrics.CacheEvent,
		Connected: func(address string) {
			s.log.Info("events of the upstream's KV cache are read", zap.String("upstream", address))
		},
		Failed: func(address string, err error) {
			s.log.Warn("the contents of the upstream's KV cache are assumed, not known", zap.String("upstream", address), zap.Error(err))
		},
	})
}

// largestReserve bounds the reserve for the first bytes of bodies.
const largestReserve = 128 << 20

// bodies returns the memory for bodies, and the additional reserve for their first bytes.
func (s *sidecar) bodies(cfg *config.Config) (whole, reserve int64) {
	all := s.memory.Bodies(int64(cfg.Job.Budget))
	reserve = min(all/4, largestReserve)
	return all - reserve, reserve
}

// queue returns the limits of the queue, which can use a quarter of the memory for bodies.
func (s *sidecar) queue(cfg *config.Config) dispatch.QueueSettings {
	bounds := cfg.Queue
	bounds.Bytes = settings.Size(s.budget.All() / 4)
	return bounds
}

// bound sets the process's memory limit, and logs if bodies get less memory than configured.
func (s *sidecar) bound(g *generation) {
	bodies := s.budget.All()
	s.memory.Bound(bodies)
	if bodies < int64(g.cfg.Job.Budget) {
		mib := func(bytes int64) string { return fmt.Sprintf("%d MiB", bytes>>20) }
		s.log.Info("bodies get less memory than job.budget, because of the memory limit", zap.String("limit", mib(s.memory.Limit)),
			zap.String("bodies", mib(bodies)), zap.String("rest", mib(s.memory.Limit-bodies)), zap.Stringer("job.budget", g.cfg.Job.Budget))
	}
}

// newTLS reads the files of the section key, and logs later changes.
func (s *sidecar) newTLS(key string, settings settings.TLS) (*files.TLS, error) {
	t, err := files.NewTLS(settings, func(err error) {
		if err != nil {
			s.log.Error("changed files cannot be used: new connections use the previous ones", zap.String("key", key), zap.Error(err))
			return
		}
		s.log.Info("changed files are used for new connections", zap.String("key", key))
	})
	if err != nil {
		err = fmt.Errorf("%s: %w", key, err)
	}
	return t, err
}

// start runs the current generation, and those that replace it, until ctx
// is done or stop is called.
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
	s.tracing.Close()
}

// startGeneration runs g until it is stopped; s.mu must be held.
func (s *sidecar) startGeneration(g *generation) {
	s.bound(g)
	ctx, cancel := context.WithCancel(s.running)
	g.reports.Follow(addresses(upstreams(s.balancer.States()))) // discovery's first set can take long
	var wg sync.WaitGroup
	wg.Go(func() { g.reports.Run(ctx) })
	wg.Go(func() { g.discovery.KeepLengths(ctx, s.balancer.Lengths) })
	wg.Go(func() {
		g.discovery.Run(ctx, func(set []pool.Upstream) {
			s.balancer.Set(set)
			g.reports.Follow(addresses(set))
		})
	})
	g.stop = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
		g.proxy.Close()
	})
}

// sinks returns the receivers of the record of each ended job.
func (s *sidecar) sinks() []func(*record.Job) {
	return []func(*record.Job){
		func(r *record.Job) { s.served.ended(s.current.Load().cfg.Quality, r) },
		s.metrics.Ended,
		tracing.Ended,
		func(r *record.Job) { s.log.Job(s.current.Load().cfg.Log, r) },
	}
}
