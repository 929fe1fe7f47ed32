package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"go.uber.org/zap"

	"example.org/pilotfish/internal/ports"
	"example.org/pilotfish/internal/quality"
	"example.org/pilotfish/internal/record"
)

// drainDelay is how long a stopping process still accepts jobs on its open
// connections. http.Server.Shutdown alone would close connections whose
// next request is already on its way.
const drainDelay = 500 * time.Millisecond

// Run serves the ports until ctx is done, and then waits for the accepted jobs,
// for at most the grace time.
func (s *sidecar) Run(ctx context.Context, p ports.Ports) (err error) {
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { s.balancer.Run(background) })
	wg.Go(func() { s.memory.GiveBack(background) })
	wg.Go(func() { s.watch(background) })
	if s.from.path != "" {
		wg.Go(func() { s.watchFile(background) })
	}
	s.start(background)
	defer s.stop()

	failed := make(chan error, 3)
	wg.Go(func() { failed <- s.servers.jobs.Serve(p.Jobs) })
	wg.Go(func() { failed <- s.servers.admin.Serve(p.Admin) })
	if p.Mesh != nil {
		wg.Go(func() { failed <- s.servers.mesh.Serve(p.Mesh) })
	}
	notify(s.log.Logger, daemon.SdNotifyReady)
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	s.stopping.Store(true) // it is already, after a signal
	notify(s.log.Logger, daemon.SdNotifyStopping)
	grace := s.current.Load().cfg.Shutdown.Grace
	s.log.Info("shutting down", zap.Duration("grace", grace), zap.Int64("jobs_left", s.open.Load()))
	p.Leave(s.log.Logger)
	time.Sleep(drainDelay)
	p.Empty(s.log.Logger)
	err = errors.Join(err, s.drain(background, grace))
	short, done := context.WithTimeout(background, time.Second)
	defer done()
	_ = s.servers.admin.Shutdown(short) // do not wait for a scraper that hangs
	return err
}

// drain waits for the open jobs, for at most the grace time, and logs every ten
// seconds how many are left. While no upstream is known, queued jobs end within a second.
func (s *sidecar) drain(ctx context.Context, grace time.Duration) (err error) {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	ended := make(chan error)
	go func() { ended <- s.servers.mesh.Shutdown(ctx) }()
	go func() { ended <- s.servers.jobs.Shutdown(ctx) }()
	for left, seconds := 2, 0; left > 0; {
		s.balancer.Dismiss(record.ErrShutdown)
		select {
		case cut := <-ended:
			err = errors.Join(err, cut)
			left--
		case <-time.After(time.Second):
			if seconds++; seconds%10 == 0 {
				s.log.Info("draining", zap.Int64("jobs_left", s.open.Load()))
			}
		}
	}
	return err
}

// notify reports the state of this process to systemd, if systemd has requested it.
func notify(log *zap.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("systemd was not notified", zap.String("state", state), zap.Error(err))
	}
}

// watch updates the journal and the modes every second until ctx is done.
func (s *sidecar) watch(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
			states := s.balancer.States()
			s.journal.LogChanges(states)
			moment := quality.Moment{Upstreams: states}
			moment.InFlight, moment.Waiting = s.balancer.Counts()
			s.served.advance(time.Now(), moment)
		}
	}
}
