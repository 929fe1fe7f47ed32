// Package registration keeps a rule processing server registered at a Consul agent
// for as long as the server runs, also when the agent restarts or forgets it.
package registration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"
)

const (
	interval   = time.Second     // of Run, and of Consul's health checks
	askTimeout = 2 * time.Second // for what is asked of the agent at a time
	forget     = time.Minute     // Consul removes a server that failed its health checks for so long
)

// Consul checks healthPath while the server takes jobs, and alivePath while it
// drains: the entry must stay, so that sidecars can see that the server drains.
const healthPath, alivePath = "/healthz", "/livez"

// Server is what the catalogue knows of a server.
type Server struct {
	Service   string // its name
	Address   string // host:port, where it takes jobs; an unspecified host stands for the agent's node
	Cores     int
	StartedAt time.Time
}

// Registration is the entry of one server in Consul's catalogue.
type Registration struct {
	agent   *api.Agent
	checked string // the URL of the server, for health checks

	mu     sync.Mutex // held while the agent is asked, so that an older entry cannot replace a newer one
	wanted api.AgentServiceRegistration
}

// New makes the registration of a server at an agent, which is host:port or a URL. A
// token and TLS come from the CONSUL_* variables. Run sends it to the agent.
func New(agent string, s Server, transport http.RoundTripper) (*Registration, error) {
	host, text, err := net.SplitHostPort(s.Address)
	if err != nil {
		return nil, fmt.Errorf("registration: %w", err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("registration: %w", err)
	}
	checked := host
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host, checked = "", "127.0.0.1" // the agent runs on the server's machine
	}
	conf := api.DefaultNonPooledConfig() // reads the environment
	conf.Address = agent
	if transport != nil {
		conf.HttpClient = &http.Client{Transport: transport}
	}
	client, err := api.NewClient(conf)
	if err != nil {
		return nil, fmt.Errorf("registration: %w", err)
	}
	at := net.JoinHostPort(checked, text)
	return &Registration{agent: client.Agent(), checked: "http://" + at, wanted: api.AgentServiceRegistration{
		ID: s.Service + "-" + at, Name: s.Service, Address: host, Port: port, Meta: s.meta(), Check: check("http://" + at + healthPath),
	}}, nil
}

// meta describes the server in the words that pilotfish's discovery reads.
func (s Server) meta() map[string]string {
	return map[string]string{
		"cores": strconv.Itoa(s.Cores), "started_at": s.StartedAt.UTC().Format(time.RFC3339), "draining": "false",
	}
}

func check(url string) *api.AgentServiceCheck {
	return &api.AgentServiceCheck{
		HTTP: url, Interval: interval.String(), Timeout: interval.String(), DeregisterCriticalServiceAfter: forget.String(),
	}
}

// Run registers the server until ctx ends, and again when the agent has lost it. It
// calls observe with nil after each registration, and with the error when the agent
// does not do what it should.
func (r *Registration) Run(ctx context.Context, observe func(error)) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if registered, err := r.register(ctx); ctx.Err() == nil && (registered || err != nil) {
			observe(err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// Drain registers that the server takes no new jobs. If that fails, Run goes on trying.
func (r *Registration) Drain(ctx context.Context) error {
	r.mu.Lock()
	r.wanted.Meta["draining"] = "true"
	r.wanted.Check = check(r.checked + alivePath)
	r.mu.Unlock()
	_, err := r.register(ctx)
	return err
}

// Leave removes the server from the catalogue. Run must have ended.
func (r *Registration) Leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	err := r.agent.ServiceDeregisterOpts(r.wanted.ID, new(api.QueryOptions).WithContext(ctx))
	if err == nil || notFound(err) {
		return nil
	}
	return fmt.Errorf("deregister %s at consul: %w", r.wanted.ID, err)
}

// register asks the agent for the server's entry, and registers it if the entry is
// missing or differs.
func (r *Registration) register(ctx context.Context) (registered bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	has, _, err := r.agent.Service(r.wanted.ID, new(api.QueryOptions).WithContext(ctx))
	if err != nil && !notFound(err) {
		return false, fmt.Errorf("look for %s at consul: %w", r.wanted.ID, err)
	}
	if err == nil && has.Service == r.wanted.Name && maps.Equal(has.Meta, r.wanted.Meta) {
		return false, nil
	}
	if err := r.agent.ServiceRegisterOpts(&r.wanted, api.ServiceRegisterOpts{}.WithContext(ctx)); err != nil {
		return false, fmt.Errorf("register %s at consul: %w", r.wanted.ID, err)
	}
	return true, nil
}

func notFound(err error) bool {
	status, ok := errors.AsType[api.StatusError](err)
	return ok && status.Code == http.StatusNotFound
}
