// Package registration keeps a rule processing server registered at a Consul agent
// for as long as the server runs, also when the agent restarts or forgets it.
package registration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/hashicorp/consul/api"

	"example.org/pilotfish/internal/settings"
)

// Registration is the entry of one server in Consul's catalogue.
type Registration struct {
	cfg   Config
	agent *api.Agent
	wake  chan struct{} // ends the pause before the next look at the agent

	mu     sync.Mutex
	wanted api.AgentServiceRegistration // what it points to is replaced, never changed
	known  chan struct{}                // closed when the agent knows what is wanted
}

// New makes a registration. Run sends it to the agent.
func New(cfg Config) (*Registration, error) {
	var faults settings.Faults
	cfg.Settings.Check(&faults)
	if cfg.Settings.Consul == "" {
		faults.Add("consul", "want the address of an agent")
	}
	if err := faults.Err(); err != nil {
		return nil, fmt.Errorf("registration: %w", err)
	}
	host, port, err := cfg.hostPort()
	if err != nil {
		return nil, fmt.Errorf("registration: %w", err)
	}
	if cfg.Observe == nil {
		cfg.Observe = func(error) {}
	}
	conf := api.DefaultNonPooledConfig() // reads the environment
	conf.Address = cfg.Settings.Consul
	if cfg.Transport != nil {
		conf.HttpClient = &http.Client{Transport: cfg.Transport}
	}
	client, err := api.NewClient(conf)
	if err != nil {
		return nil, fmt.Errorf("registration: %w", err)
	}
	return &Registration{
		cfg: cfg, agent: client.Agent(), wake: make(chan struct{}, 1),
		wanted: cfg.service(host, port), known: make(chan struct{}),
	}, nil
}

// Run registers the server until ctx ends, and again when the agent has lost it.
// After a failure it tries again sooner, with growing pauses.
func (r *Registration) Run(ctx context.Context) {
	retry := backoff.NewExponentialBackOff()
	retry.InitialInterval = lookInterval / 10
	retry.MaxInterval = lookInterval
	for {
		pause := lookInterval
		err := r.keep(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			r.cfg.Observe(err)
			pause = retry.NextBackOff()
		default:
			retry.Reset()
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-r.wake:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// Drain registers that the server takes no new jobs, and when it stops unless
// stopsAt is zero. The channel is closed once the agent knows. The caller calls it
// at most once.
func (r *Registration) Drain(stopsAt time.Time) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	meta := maps.Clone(r.wanted.Meta)
	meta["draining"] = "true"
	if !stopsAt.IsZero() {
		meta["stops_at"] = stamp(stopsAt)
	}
	r.wanted.Meta, r.known = meta, make(chan struct{})
	r.wanted.Check = r.cfg.check(strings.TrimSuffix(r.wanted.Check.HTTP, healthPath) + alivePath)
	select {
	case r.wake <- struct{}{}:
	default: // Run is about to look anyway
	}
	return r.known
}

// Leave removes the server from the catalogue. Run must have ended.
func (r *Registration) Leave(ctx context.Context) error {
	err := r.agent.ServiceDeregisterOpts(r.wanted.ID, new(api.QueryOptions).WithContext(ctx))
	var status api.StatusError
	if err == nil || errors.As(err, &status) && status.Code == http.StatusNotFound {
		return nil
	}
	return fmt.Errorf("deregister %s at consul: %w", r.wanted.ID, err)
}

// keep asks the agent for the server's entry, and registers it if the entry is
// missing or differs.
func (r *Registration) keep(ctx context.Context) error {
	r.mu.Lock()
	wanted, known := r.wanted, r.known
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	has, _, err := r.agent.Service(wanted.ID, new(api.QueryOptions).WithContext(ctx))
	var status api.StatusError
	if err != nil && !(errors.As(err, &status) && status.Code == http.StatusNotFound) {
		return fmt.Errorf("look for %s at consul: %w", wanted.ID, err)
	}
	if !same(has, &wanted) {
		if err := r.agent.ServiceRegisterOpts(&wanted, api.ServiceRegisterOpts{}.WithContext(ctx)); err != nil {
			return fmt.Errorf("register %s at consul: %w", wanted.ID, err)
		}
		r.cfg.Observe(nil)
	}
	select {
	case <-known: // since an earlier look
	default:
		close(known)
	}
	return nil
}
