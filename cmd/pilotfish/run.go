package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"go.uber.org/zap"

	"example.org/pilotfish/internal/memory"
	"example.org/pilotfish/internal/mesh"
	"example.org/pilotfish/internal/ports"
	"example.org/pilotfish/internal/proxy"
	"example.org/pilotfish/internal/statefile"
)

// drainDelay is how long a process that ends still takes jobs on the connections
// that it has accepted. http.Server.Shutdown alone would close those whose
// request is still on its way.
const drainDelay = 500 * time.Millisecond

// Run serves the ports until ctx ends, and then lets the accepted jobs finish
// within the grace time. from is where a reload gets its configuration; nil has none.
func (s *sidecar) Run(ctx context.Context, p ports.Ports, from *source) error {
	servers, err := s.servers(from)
	if err != nil {
		return err
	}
	s.serving.Store(&servers)
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { s.balancer.Run(background) })
	bodies := func() int64 { return s.current.Load().budget.All() + int64(s.first.Submitters.Heads) }
	wg.Go(func() { memory.Keep(background, bodies) })
	wg.Go(func() { s.watch(background) })
	wg.Go(func() { s.prewarm.Run(background) })
	wg.Go(func() { s.capture.Run(background) })
	statePath := func() string { return s.current.Load().cfg.State.Path }
	wg.Go(func() { statefile.Keep(background, statePath, s.balancer, s.log.Logger) })
	if from != nil && from.path != "" {
		wg.Go(func() { s.watchFile(background, from) })
	}
	s.start(background)
	defer s.stop()

	failed := make(chan error, 3)
	wg.Go(func() { failed <- servers.jobs.Serve(p.Jobs) })
	wg.Go(func() { failed <- servers.admin.Serve(p.Admin) })
	if p.Mesh != nil {
		wg.Go(func() { failed <- servers.mesh.Serve(p.Mesh) })
	}
	notify(s.log.Logger, daemon.SdNotifyReady)
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	s.stopping.Store(true)
	notify(s.log.Logger, daemon.SdNotifyStopping)
	grace := s.current.Load().cfg.Shutdown.Grace
	s.log.Info("shutting down", zap.Duration("grace", grace), zap.Int64("jobs_left", s.open.Load()))
	p.Leave(s.log.Logger)
	time.Sleep(drainDelay)
	err = errors.Join(err, s.drain(background, servers, grace))
	short, done := context.WithTimeout(background, time.Second)
	defer done()
	_ = servers.admin.Shutdown(short) // a scraper that hangs keeps nobody
	return err
}

// servers are what serves the ports.
type servers struct {
	jobs, admin *proxy.Server
	mesh        *mesh.Server
}

// adminConns bounds the connections of the admin port.
const adminConns = 64

func (s *sidecar) servers(from *source) (all servers, err error) {
	handler, err := s.admin(from)
	if err != nil {
		return all, err
	}
	errorLog, err := zap.NewStdLogAt(s.log.Logger, zap.WarnLevel)
	if err != nil {
		return all, err
	}
	if all.jobs, err = proxy.NewServer(s, proxy.ServerConfig{
		MaxHeader: int(s.first.Submitters.MaxHead), Conns: s.first.Submitters.Connections, Arriving: s.heads, ErrorLog: errorLog,
	}); err != nil {
		return all, err
	}
	all.mesh = mesh.NewServer(mesh.ServerConfig{
		Filter: s.filter, Ready: s.ready, MaxBody: int64(s.first.Job.MaxBody), ErrorLog: errorLog,
	})
	all.admin, err = proxy.NewServer(handler, proxy.ServerConfig{ErrorLog: errorLog, Conns: adminConns, CloseIdle: true})
	return all, err
}

// drain lets the open jobs finish within the grace time, and tells every ten
// seconds how many are left.
func (s *sidecar) drain(ctx context.Context, all servers, grace time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		cut := make(chan error, 1)
		go func() { cut <- all.mesh.Shutdown(ctx) }()
		ended <- errors.Join(all.jobs.Shutdown(ctx), <-cut)
	}()
	for {
		select {
		case err := <-ended:
			return err
		case <-time.After(10 * time.Second):
			s.log.Info("draining", zap.Int64("jobs_left", s.open.Load()))
		}
	}
}

// notify tells systemd how far this process is, if it was asked to.
func notify(log *zap.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("systemd was not notified", zap.String("state", state), zap.Error(err))
	}
}
