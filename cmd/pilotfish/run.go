package main

import (
	"context"
	"crypto/tls"
	"errors"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"go.uber.org/zap"

	"example.org/pilotfish/internal/files"
	"example.org/pilotfish/internal/mesh"
	"example.org/pilotfish/internal/ports"
	"example.org/pilotfish/internal/proxy"
	"example.org/pilotfish/internal/quality"
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
	wg.Go(func() { s.memory.GiveBack(background) })
	wg.Go(func() { s.watch(background) })
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

// Bounds of the admin port: its connections, and how long one that nobody uses may keep
// others out.
const (
	adminConns = 256
	adminIdle  = 10 * time.Second
)

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
		Conns: s.first.Submitters.Connections, ErrorLog: errorLog,
	}); err != nil {
		return all, err
	}
	shown, err := s.meshCertificate()
	if err != nil {
		return all, err
	}
	all.mesh = mesh.NewServer(mesh.ServerConfig{Filter: s.filter, Ready: s.refusal, Certificate: shown, ErrorLog: errorLog})
	all.admin, err = proxy.NewServer(handler, proxy.ServerConfig{ErrorLog: errorLog, Conns: adminConns, IdleTimeout: adminIdle, Unframed: true})
	return all, err
}

// meshCertificate is what the mesh port shows; nil without TLS.
func (s *sidecar) meshCertificate() (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	switch s.first.Mesh.TLS {
	case "":
		return nil, nil
	case mesh.SelfSigned:
		own, err := files.SelfSigned(time.Now())
		return func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return own, nil }, err
	}
	t, err := s.newTLS("mesh.tls", s.first.Mesh.Files())
	if err != nil {
		return nil, err
	}
	return t.Certificate, nil
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

// watch looks at the upstreams and at the modes every second until ctx ends.
func (s *sidecar) watch(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
			states := s.balancer.States()
			s.journal.Look(states)
			moment := quality.Moment{Upstreams: states}
			moment.InFlight, moment.Waiting = s.balancer.Counts()
			s.served.look(time.Now(), moment)
		}
	}
}
