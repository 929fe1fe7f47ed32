package main

import (
	"context"
	"net"
	"sync"
	"time"

	"go.uber.org/zap"

	"example.org/pilotfish/internal/ruleserver/registration"
)

// entry is the server's entry in Consul's catalogue; nil without Consul.
type entry struct {
	registration *registration.Registration
	log          *zap.Logger
	tellWithin   time.Duration      // bounds a wait for Consul when the server ends
	stop         context.CancelFunc // ends the goroutine that keeps the entry
	running      sync.WaitGroup     // that goroutine
}

// enter registers the server, which takes jobs at address, if --consul is set.
func (f *flags) enter(address net.Addr, log *zap.Logger) (*entry, error) {
	if f.Registration.Consul == "" {
		return nil, nil
	}
	started := time.Now()
	var stopsAt time.Time
	if f.Preemptible {
		stopsAt = started.Add(f.Lifetime)
	}
	r, err := registration.New(registration.Config{
		Settings: f.Registration, Address: address.String(),
		Cores: f.Server.Cores, StartedAt: started, Preemptible: f.Preemptible, StopsAt: stopsAt,
		Observe: func(err error) {
			if err != nil {
				log.Warn("registration", zap.Error(err))
				return
			}
			log.Info("registered", zap.String("service", f.Registration.Service), zap.Stringer("address", address))
		},
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	e := &entry{registration: r, log: log, tellWithin: f.TellWithin, stop: cancel}
	e.running.Go(func() { r.Run(ctx) })
	return e, nil
}

// drain registers that the server takes no new jobs, and when it stops unless stopsAt
// is zero.
func (e *entry) drain(stopsAt time.Time) {
	if e == nil {
		return
	}
	select {
	case <-e.registration.Drain(stopsAt):
	case <-time.After(e.tellWithin):
		e.log.Warn("draining, but Consul did not confirm it in time: sidecars may send jobs for a little longer, which are refused")
	}
}

// leave removes the server from the catalogue.
func (e *entry) leave() {
	if e == nil {
		return
	}
	e.stop()
	e.running.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), e.tellWithin)
	defer cancel()
	if err := e.registration.Leave(ctx); err != nil {
		e.log.Warn("registration", zap.Error(err))
	}
}
