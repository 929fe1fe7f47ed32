package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/hashicorp/consul/api"

	"example.org/pilotfish/internal/ruleserver"
)

// consulFlags configure the registration with a Consul agent (the thesis, 2.4).
type consulFlags struct {
	Agent      string        `name:"consul" placeholder:"HOST:PORT" help:"Register with this Consul agent, and deregister at the end. The token is the environment variable CONSUL_HTTP_TOKEN."`
	Service    string        `name:"consul-service" default:"ruleserver" placeholder:"NAME" help:"Name of the service in Consul."`
	Overloaded int           `default:"100" placeholder:"N" help:"Number of stalled joblets above which Consul's check is warning."`
	Lifetime   time.Duration `placeholder:"TIME" help:"Lifetime of this machine until it is pre-empted. Consul's meta has stops_at, and the check is critical in the last 30 s."`
}

const (
	checkEvery = 2 * time.Second
	checkTTL   = 5 * checkEvery // Consul marks the server as down after this time without an update
	forgotten  = "10m"          // after this time, Consul removes a server that is down
)

// registration keeps a server's entry in a Consul agent up to date.
type registration struct {
	agent   *api.Agent
	service api.AgentServiceRegistration
	health  func(now time.Time) (ruleserver.Health, string)
	log     *slog.Logger
}

func newRegistration(f consulFlags, address net.Addr, cores int, started time.Time, server *ruleserver.Server, log *slog.Logger) (*registration, error) {
	host, text, err := net.SplitHostPort(address.String())
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return nil, err
	}
	config := api.DefaultConfig()
	config.Address = f.Agent
	client, err := api.NewClient(config)
	if err != nil {
		return nil, fmt.Errorf("--consul: %w", err)
	}
	meta := map[string]string{"cores": strconv.Itoa(cores), "started_at": started.UTC().Format(time.RFC3339)}
	var stops time.Time
	if f.Lifetime > 0 {
		stops = started.Add(f.Lifetime)
		meta["preemptible"], meta["stops_at"] = "true", stops.UTC().Format(time.RFC3339)
	}
	id := f.Service + "-" + address.String()
	return &registration{
		agent: client.Agent(), log: log,
		service: api.AgentServiceRegistration{
			ID: id, Name: f.Service, Address: host, Port: port, Meta: meta,
			Check: &api.AgentServiceCheck{
				CheckID: id, TTL: checkTTL.String(), Status: api.HealthCritical, DeregisterCriticalServiceAfter: forgotten,
			},
		},
		health: func(now time.Time) (ruleserver.Health, string) { return server.Health(now, f.Overloaded, stops) },
	}, nil
}

// run registers the server and updates its check until ctx is done, then deregisters it. While the agent
// is unreachable it keeps trying, and logs the first failure of each kind.
func (r *registration) run(ctx context.Context) {
	var last string
	for registered := false; ; {
		err := r.update(ctx, &registered)
		if ctx.Err() != nil {
			break
		}
		switch {
		case err == nil && last != "":
			r.log.Info("registered with Consul again")
			last = ""
		case err != nil && err.Error() != last:
			last = err.Error()
			r.log.Warn("not registered with Consul", "error", last)
		}
		select {
		case <-ctx.Done():
		case <-time.After(checkEvery):
		}
	}
	end, cancel := context.WithTimeout(context.Background(), checkEvery)
	defer cancel()
	if err := r.agent.ServiceDeregisterOpts(r.service.ID, (&api.QueryOptions{}).WithContext(end)); err != nil {
		r.log.Warn("not deregistered from Consul", "error", err)
	}
}

// update registers the server if it is not registered, and updates its check. An agent that has restarted
// without its data does not know the check, so the server is registered again.
func (r *registration) update(ctx context.Context, registered *bool) error {
	if !*registered {
		if err := r.agent.ServiceRegisterOpts(&r.service, api.ServiceRegisterOpts{}.WithContext(ctx)); err != nil {
			return err
		}
		*registered = true
	}
	health, note := r.health(time.Now())
	err := r.agent.UpdateTTLOpts(r.service.ID, note, string(health), (&api.QueryOptions{}).WithContext(ctx))
	var status api.StatusError
	if errors.As(err, &status) {
		*registered = false
	}
	return err
}
