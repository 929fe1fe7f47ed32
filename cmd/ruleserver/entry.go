package main

import (
	"context"
	"net"
	"sync"
	"time"

	"go.uber.org/zap"

	"example.org/pilotfish/internal/ruleserver/registration"
)

// tellWithin bounds how long the catalogue is waited for as the server ends.
const tellWithin = time.Second

// entry is the server's in the catalogue where others find it: Consul's, or none when nil.
type entry struct {
	registration *registration.Registration
	log          *zap.Logger
	end          context.CancelFunc // of keeping it
	kept         sync.WaitGroup
}

// enter registers the server that takes jobs at address, if Consul is asked for.
func (f flags) enter(address net.Addr, log *zap.Logger) (*entry, error) {
	if f.Consul == "" {
		return nil, nil
	}
	started := time.Now()
	var stopsAt time.Time
	if f.Preemptible {
		stopsAt = started.Add(f.Lifetime)
	}
	r, err := registration.New(registration.Config{
		Agent: f.Consul, Service: f.Service, Address: address.String(),
		Cores: f.Cores, StartedAt: started, Preemptible: f.Preemptible, StopsAt: stopsAt,
		Interval: f.CheckInterval, DeregisterAfter: f.DeregisterAfter,
		Observe: func(err error) {
			if err != nil {
				log.Warn("registration", zap.Error(err))
				return
			}
			log.Info("registered", zap.String("service", f.Service), zap.Stringer("address", address))
		},
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	e := &entry{registration: r, log: log, end: cancel}
	e.kept.Go(func() { r.Run(ctx) })
	return e, nil
}

// drain says that the server takes no new jobs, and when it stops if that is known.
func (e *entry) drain(stopsAt time.Time) {
	if e == nil {
		return
	}
	select {
	case <-e.registration.Drain(stopsAt):
	case <-time.After(tellWithin):
		e.log.Warn("draining, and the catalogue does not know it yet")
	}
}

// leave takes the server out.
func (e *entry) leave() {
	if e == nil {
		return
	}
	e.end()
	e.kept.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), tellWithin)
	defer cancel()
	if err := e.registration.Leave(ctx); err != nil {
		e.log.Warn("registration", zap.Error(err))
	}
}
