package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"

	"example.org/pilotfish/internal/files"
	"example.org/pilotfish/internal/httpclient"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
)

const (
	consulWait    = time.Minute     // maximum wait of a blocking query for a change
	consulTimeout = 5 * time.Second // timeout of a reply, in addition to that wait
)

// Consul is a service whose healthy instances are the upstreams. TLS, the namespace and other
// options of Consul's clients are read from Consul's own CONSUL_* environment variables.
type Consul struct {
	// Address is the agent's address: host:port, or a URL with http, https or unix.
	// Empty means 127.0.0.1:8500.
	Address string `yaml:"address"`
	// Service is the name of the service.
	Service string `yaml:"service"`
	// AllowWarning also accepts instances whose worst check is in the state warning, with their weight for that state. Without
	// it, all checks of an instance must be passing.
	AllowWarning bool `yaml:"allow_warning"`
	// TokenFile holds the ACL token. It is read before every query.
	TokenFile string `yaml:"token_file"`
}

func (s *Consul) check(f *settings.Faults) {
	switch {
	case s.Service == "":
		f.Add("service", "a service is required")
	case strings.ContainsAny(s.Service, "/?#"):
		f.Add("service", "%s must not contain / ? or #", settings.Quote(s.Service))
	}
	scheme, _, has := strings.Cut(s.Address, "://")
	switch {
	case scheme != "unix" && strings.Contains(cmp.Or(s.Address, os.Getenv(api.HTTPAddrEnvName)), "@"):
		f.Add("address", "it holds credentials, which messages would show; set CONSUL_HTTP_AUTH or token_file instead")
	case has && scheme != "https" && scheme != "http" && scheme != "unix":
		f.Add("address", "%s must begin with http, https or unix", settings.Quote(s.Address))
	}
	if _, err := files.Token(s.TokenFile); err != nil {
		f.Warn("token_file", "%v", err) // the file can be created later
	}
}

// consul queries an agent for the passing instances of a service, with blocking
// queries.
type consul struct {
	cfg    Consul
	client *api.Client
	index  uint64 // of the last reply; 0 makes the next query return at once
}

func (s *Consul) open(c *Config) (source, error) {
	// This configuration reads the environment and opens a connection for each query. A pooled connection
	// would stay with an old agent, and there is at most one query a second, usually one a minute.
	conf := api.DefaultNonPooledConfig()
	conf.Address = cmp.Or(s.Address, conf.Address)
	name := "consul service " + s.Service + " at " + conf.Address // NewClient changes conf.Address
	conf.Transport.Proxy = nil
	conf.Transport.DialContext = (&net.Dialer{Timeout: 3 * time.Second}).DialContext
	conf.Transport.MaxResponseHeaderBytes = 64 << 10
	if c.Transport != nil {
		conf.HttpClient = &http.Client{Transport: c.Transport}
	}
	client, err := api.NewClient(conf)
	if err != nil {
		return source{}, fmt.Errorf("consul: %w", err)
	}
	conf.HttpClient.Transport = bounded{conf.HttpClient.Transport}
	conf.HttpClient.CheckRedirect = httpclient.CheckRedirect // each request carries the token
	return source{(&consul{cfg: *s, client: client}).query, name, shortest}, nil
}

// query skips instances without a valid address. An invalid value in an instance's meta is
// ignored; the instance stays.
func (c *consul) query(ctx context.Context, atMost time.Duration) (r reply, err error) {
	entries, meta, err := c.health(ctx, atMost)
	if err != nil {
		c.index = 0 // the next server may use other indices
		return r, fmt.Errorf("the Consul agent gives no reply: %w", err)
	}
	if meta.LastIndex < c.index {
		meta.LastIndex = 0 // a restarted catalogue, or no index: waiting for the old one could miss changes
	}
	c.index = meta.LastIndex
	for _, e := range entries {
		if !c.cfg.AllowWarning || !hasCheck(e, func(status string) bool { return status != api.HealthPassing && status != api.HealthWarning }) {
			r.add(readEntry(e))
		}
	}
	return r, nil
}

func (c *consul) health(ctx context.Context, atMost time.Duration) ([]*api.ServiceEntry, *api.QueryMeta, error) {
	token, err := files.Token(c.cfg.TokenFile) // if there is none, the client uses CONSUL_HTTP_TOKEN
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
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
	defer cancel()

	entries, meta, err := c.client.Health().Service(c.cfg.Service, "", !c.cfg.AllowWarning, opts.WithContext(ctx))
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, nil, context.Cause(ctx)
	case err != nil:
		return nil, nil, brief(err)
	case !meta.KnownLeader && meta.QueryBackend != api.QueryBackendStreaming: // a streaming client agent never reports a leader
		return nil, nil, errors.New("the Consul server has no leader")
	case len(entries) == 0 && meta.ResultsFilteredByACLs:
		return nil, nil, errors.New("the ACL token may not read the service or its nodes")
	}
	return entries, meta, nil
}

// brief shortens the error of a query to one log line.
func brief(err error) error {
	if status, ok := errors.AsType[api.StatusError](err); ok {
		return fmt.Errorf("status %d: %s", status.Code, settings.Quote(strings.TrimSpace(status.Body)))
	}
	if at, ok := errors.AsType[*url.Error](err); ok {
		return at.Err // without the URL: its index differs each time, so the error would be logged again
	}
	return err
}

// hasCheck reports whether an instance has a check whose status matches.
func hasCheck(e *api.ServiceEntry, matches func(status string) bool) bool {
	return e != nil && slices.ContainsFunc(e.Checks, func(c *api.HealthCheck) bool { return c != nil && matches(c.Status) })
}

// readEntry converts an instance to an upstream. The upstream has no address if the instance's is invalid.
func readEntry(e *api.ServiceEntry) (u pool.Upstream, err error) {
	if e == nil || e.Service == nil {
		return u, errors.New("an instance is null")
	}
	host := e.Service.Address
	if host == "" && e.Node != nil {
		host = e.Node.Address
	}
	address, err := settings.JoinAddress(host, e.Service.Port)
	if err != nil {
		return u, fmt.Errorf("instance %s: %w", settings.Quote(e.Service.ID), err)
	}
	var a attributes
	for _, key := range keys { // the other keys of the meta belong to other programs
		if value, ok := e.Service.Meta[key]; ok && key != weightKey {
			err = errors.Join(err, a.set(key, value))
		}
	}
	if err != nil {
		err = fmt.Errorf("instance %s: meta %w", settings.Quote(e.Service.ID), err)
	}
	w := e.Service.Weights.Passing
	if hasCheck(e, func(status string) bool { return status == api.HealthWarning }) {
		w = e.Service.Weights.Warning
	}
	if w > 0 && w <= maxWeight {
		a.Weight = float64(w)
	}
	return a.at(address), err
}
