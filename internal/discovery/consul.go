package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"

	"example.org/pilotfish/internal/files"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
)

const (
	consulWait    = time.Minute     // a query waits so long for a change
	consulTimeout = 5 * time.Second // a reply may take so long beyond that
)

// Consul is a service whose passing instances are the upstreams. What else its clients
// can set comes from Consul's own CONSUL_* environment variables: TLS, the namespace.
type Consul struct {
	// Address is the agent's: host:port, or a URL with http, https or unix.
	// Empty means 127.0.0.1:8500.
	Address string `yaml:"address"`
	// Service is the name of the service.
	Service string `yaml:"service"`
	// TokenFile holds the ACL token. It is read before every query.
	TokenFile string `yaml:"token_file"`
}

func (s *Consul) check(f *settings.Faults) {
	switch {
	case s.Service == "":
		f.Add("service", "a service is required")
	case strings.ContainsAny(s.Service, "/?#"):
		f.Add("service", "%s must not contain / ? or #", quote(s.Service))
	}
	if scheme, _, has := strings.Cut(s.Address, "://"); has && scheme != "https" && scheme != "http" && scheme != "unix" {
		f.Add("address", "%s must begin with http, https or unix", quote(s.Address))
	}
	if _, err := s.token(); err != nil {
		f.Warn("token_file", "%v", err) // it may come later
	}
}

// token is the ACL token; "" is none, or that of the environment.
func (s *Consul) token() (string, error) {
	if s.TokenFile == "" {
		return "", nil
	}
	return files.Token(s.TokenFile)
}

// consul asks an agent for the passing instances of a service, with
// queries that block until the catalogue's index moves.
type consul struct {
	cfg    Consul
	client *api.Client
	index  uint64 // of the last reply; 0 asks without blocking
}

func (s *Consul) open(c *Config) (origin, error) {
	client, address, err := newConsulClient(s.Address, c.Transport)
	if err != nil {
		return origin{}, fmt.Errorf("consul: %w", err)
	}
	source := &consul{cfg: *s, client: client}
	return origin{source.ask, "consul service " + s.Service + " at " + address, shortest}, nil
}

func (c *consul) ask(ctx context.Context, atMost time.Duration) (reply, error) {
	entries, meta, err := c.query(ctx, atMost)
	if err != nil {
		c.index = 0 // the next server may count differently
		return reply{}, fmt.Errorf("the Consul agent gives no reply: %w", err)
	}
	if meta.LastIndex >= c.index {
		c.index = meta.LastIndex
	} else {
		c.index = 0 // that of another catalogue, or missing: to wait for it could miss changes
	}
	return readEntries(entries), nil
}

func (c *consul) query(ctx context.Context, atMost time.Duration) ([]*api.ServiceEntry, *api.QueryMeta, error) {
	token, err := c.cfg.token()
	if err != nil {
		return nil, nil, fmt.Errorf("its token: %w", err)
	}
	opts := &api.QueryOptions{Token: token}
	limit := consulTimeout
	if c.index > 0 {
		opts.WaitIndex, opts.WaitTime = c.index, consulWait
		if atMost > 0 {
			opts.WaitTime = min(consulWait, max(atMost, time.Second))
		}
		limit += opts.WaitTime + opts.WaitTime/16 // an agent makes a wait longer by up to a 16th
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	entries, meta, err := c.client.Health().Service(c.cfg.Service, "", true, opts.WithContext(ctx))
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, nil, errors.New("it takes too long")
	case err != nil:
		return nil, nil, brief(err)
	case !meta.KnownLeader && meta.QueryBackend != api.QueryBackendStreaming: // a client agent's streamed view never knows one
		return nil, nil, errors.New("the server that replied knows no leader")
	case len(entries) == 0 && meta.ResultsFilteredByACLs:
		return nil, nil, errors.New("the ACL token may not read the service or its nodes")
	}
	return entries, meta, nil
}

// brief says in one log line why there is no reply.
func brief(err error) error {
	var status api.StatusError
	if errors.As(err, &status) {
		return fmt.Errorf("status %d: %s", status.Code, quote(strings.TrimSpace(status.Body)))
	}
	var at *url.Error // has the query, which is another each time
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// readEntries turns instances into upstreams. An instance without a usable
// address is left out; a wrong value in its meta costs only what that value
// would tell.
func readEntries(entries []*api.ServiceEntry) reply {
	r := reply{upstreams: make([]pool.Upstream, 0, len(entries))}
	for _, e := range entries {
		u, ok, err := readEntry(e)
		if ok {
			r.upstreams = append(r.upstreams, u)
		}
		r.leaveOut(err)
	}
	return r
}

// readEntry turns one instance into an upstream. It is not ok without an address.
func readEntry(e *api.ServiceEntry) (u pool.Upstream, ok bool, err error) {
	if e == nil || e.Service == nil {
		return u, false, errors.New("an instance is null")
	}
	host := e.Service.Address
	if host == "" && e.Node != nil {
		host = e.Node.Address
	}
	address, err := join(host, e.Service.Port)
	if err != nil {
		return u, false, fmt.Errorf("instance %s: %w", quote(e.Service.ID), err)
	}
	var a attributes
	for _, key := range []string{"cores", "started_at", "stops_at", "preemptible", "draining"} { // other keys are not ours
		if value, told := e.Service.Meta[key]; told {
			err = errors.Join(err, a.set(key, value))
		}
	}
	if err != nil {
		err = fmt.Errorf("instance %s: meta %w", quote(e.Service.ID), err)
	}
	if w := e.Service.Weights.Passing; w > 0 && w <= maxWeight {
		a.weight = float64(w)
	}
	return a.upstream(address), true, err
}

// newConsulClient returns a client of the agent at an address, or with "" of that of the
// environment, and which that is. A nil transport is one that connects.
func newConsulClient(address string, transport http.RoundTripper) (*api.Client, string, error) {
	// It reads the environment, and connects anew for each query: there is at most about one a second,
	// usually one a minute, and a pooled connection would outlive an agent that moved.
	conf := api.DefaultNonPooledConfig()
	conf.Address = cmp.Or(address, conf.Address)
	shown := conf.Address
	conf.Transport.Proxy = nil
	conf.Transport.DialContext = (&net.Dialer{Timeout: 3 * time.Second}).DialContext
	conf.Transport.MaxResponseHeaderBytes = 64 << 10
	if transport != nil {
		conf.HttpClient = &http.Client{Transport: transport}
	}
	client, err := api.NewClient(conf)
	if err != nil {
		return nil, "", err
	}
	conf.HttpClient.Transport = bounded{conf.HttpClient.Transport}
	// A redirect would send the token to another server.
	conf.HttpClient.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client, shown, nil
}
