// Package registration keeps a rule processing server in a Consul agent's
// catalogue for as long as it lives, whatever becomes of the agent.
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
)

// Registration is one server's entry in the catalogue.
type Registration struct {
	cfg   Config
	agent *api.Agent
	wake  chan struct{} // of what waits for the next look

	mu     sync.Mutex
	wanted api.AgentServiceRegistration // what it points to is not changed, but replaced
	told   chan struct{}                // closed when the agent knows what is wanted
}

// New makes a registration, which Run keeps.
func New(cfg Config) (*Registration, error) {
	cfg, host, port, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("registration: %w", err)
	}
	conf := api.DefaultNonPooledConfig() // reads the environment
	conf.Address = cfg.Agent
	if cfg.Transport != nil {
		conf.HttpClient = &http.Client{Transport: cfg.Transport}
	}
	client, err := api.NewClient(conf)
	if err != nil {
		return nil, fmt.Errorf("registration: %w", err)
	}
	return &Registration{
		cfg: cfg, agent: client.Agent(), wake: make(chan struct{}, 1),
		wanted: cfg.service(host, port), told: make(chan struct{}),
	}, nil
}

// Run registers the server, and again whenever the agent has lost it, until
// ctx ends. After a failure it tries sooner, and less and less often.
func (r *Registration) Run(ctx context.Context) {
	retry := backoff.NewExponentialBackOff()
	retry.InitialInterval = r.cfg.Every / 10
	retry.MaxInterval = r.cfg.Every
	for {
		pause := r.cfg.Every
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

// Drain tells the catalogue that the server takes no new jobs, and when it
// stops if that is known: stopsAt is not zero. The channel is closed once the
// agent knows. It may be called once.
func (r *Registration) Drain(stopsAt time.Time) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	meta := maps.Clone(r.wanted.Meta)
	meta["draining"] = "true"
	if !stopsAt.IsZero() {
		meta["stops_at"] = stamp(stopsAt)
	}
	r.wanted.Meta, r.told = meta, make(chan struct{})
	r.wanted.Check = r.cfg.check(strings.TrimSuffix(r.wanted.Check.HTTP, health) + alive)
	select {
	case r.wake <- struct{}{}:
	default: // it is to be woken already
	}
	return r.told
}

// Leave takes the server out of the catalogue. Run must have ended.
func (r *Registration) Leave(ctx context.Context) error {
	err := r.agent.ServiceDeregisterOpts(r.wanted.ID, new(api.QueryOptions).WithContext(ctx))
	var status api.StatusError
	if err == nil || errors.As(err, &status) && status.Code == http.StatusNotFound {
		return nil
	}
	return fmt.Errorf("deregister %s at consul: %w", r.wanted.ID, err)
}

// keep looks whether the agent knows the server as it is, and tells it if not.
func (r *Registration) keep(ctx context.Context) error {
	r.mu.Lock()
	wanted, told := r.wanted, r.told
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	has, _, err := r.agent.Service(wanted.ID, new(api.QueryOptions).WithContext(ctx))
	var status api.StatusError
	if err != nil && !(errors.As(err, &status) && status.Code == http.StatusNotFound) {
		return fmt.Errorf("look for %s at consul: %w", wanted.ID, err)
	}
	if !knows(has, &wanted) {
		if err := r.agent.ServiceRegisterOpts(&wanted, api.ServiceRegisterOpts{}.WithContext(ctx)); err != nil {
			return fmt.Errorf("register %s at consul: %w", wanted.ID, err)
		}
		r.cfg.Observe(nil)
	}
	select {
	case <-told: // by an earlier look
	default:
		close(told)
	}
	return nil
}
