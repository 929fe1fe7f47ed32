package discovery

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/hashicorp/consul/api"

	"example.org/pilotfish/internal/files"
	"example.org/pilotfish/internal/pool"
)

// consulTimeout is how long a reply may take beyond the query's own wait.
const consulTimeout = 5 * time.Second

// consul asks an agent for the passing instances of a service, with
// queries that block until the catalogue's index moves.
type consul struct {
	cfg    Consul
	client *api.Client
	index  uint64 // of the last reply; 0 asks without blocking
}

func newConsul(cfg Consul, transport http.RoundTripper) (origin, error) {
	client, address, err := newConsulClient(cfg, transport)
	if err != nil {
		return origin{}, fmt.Errorf("consul: %w", err)
	}
	name := "consul service " + cfg.Service
	if cfg.Tag != "" {
		name += " tag " + cfg.Tag
	}
	return origin{
		source: &consul{cfg: cfg, client: client},
		name:   name + " at " + address,
		// One query is saved up, so that the next wait follows at once on the
		// change that ends a long one.
		pace: pace{gap: shortest, saved: 1, retryMax: longestRetry},
	}, nil
}

func (c *consul) ask(ctx context.Context, atMost time.Duration) (reply, error) {
	entries, meta, err := c.query(ctx, atMost)
	if err != nil {
		c.index = 0 // the next server may count differently
		return reply{}, err
	}
	c.index = nextIndex(c.index, meta.LastIndex)
	return readEntries(entries), nil
}

func (c *consul) query(ctx context.Context, atMost time.Duration) ([]*api.ServiceEntry, *api.QueryMeta, error) {
	opts := &api.QueryOptions{
		Datacenter: c.cfg.Datacenter,
		Namespace:  c.cfg.Namespace,
		AllowStale: c.cfg.Stale,
	}
	if c.cfg.TokenFile != "" {
		var err error
		if opts.Token, err = files.Token(c.cfg.TokenFile); err != nil {
			return nil, nil, fmt.Errorf("read consul token: %w", err)
		}
	}
	limit := consulTimeout
	if c.index > 0 {
		opts.WaitIndex, opts.WaitTime = c.index, c.cfg.Wait
		if atMost > 0 {
			opts.WaitTime = min(c.cfg.Wait, max(atMost, time.Second))
		}
		limit += opts.WaitTime + opts.WaitTime/16 // an agent makes a wait longer by up to a 16th
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	entries, meta, err := c.client.Health().Service(c.cfg.Service, c.cfg.Tag, true, opts.WithContext(ctx))
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, nil, fmt.Errorf("ask consul: no reply within %s: %w", limit, ctx.Err())
	case err != nil:
		return nil, nil, fmt.Errorf("ask consul: %w", brief(err))
	case leaderless(meta):
		return nil, nil, errors.New("ask consul: the server that replied knows no leader")
	case len(entries) == 0 && meta.ResultsFilteredByACLs:
		return nil, nil, errors.New("ask consul: the ACL token may not read the service or its nodes")
	}
	return entries, meta, nil
}

// nextIndex is what to wait for after a reply with the index got. An index that
// went back belongs to another catalogue, and waiting for it could miss changes;
// a missing one reads as 0. After both, the next query does not wait.
func nextIndex(before, got uint64) uint64 {
	if got < before {
		return 0
	}
	return got
}

// leaderless reports whether the server that replied knows of no leader. A
// client agent that replies from its streamed view never says that it knows one.
func leaderless(m *api.QueryMeta) bool {
	return !m.KnownLeader && m.QueryBackend != api.QueryBackendStreaming
}

// readEntries turns instances into upstreams. An instance without a usable
// address is left out; a wrong value in its meta costs only what that value
// would tell.
func readEntries(entries []*api.ServiceEntry) reply {
	r := reply{upstreams: make([]pool.Upstream, 0, len(entries))}
	var found flaws
	for _, e := range entries {
		u, ok, err := readEntry(e)
		if ok {
			r.upstreams = append(r.upstreams, u)
		}
		found.add(err)
	}
	r.flaw = found.err()
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
	a, err := readMeta(e.Service.Meta)
	if err != nil {
		err = fmt.Errorf("instance %s: meta %w", quote(e.Service.ID), err)
	}
	if w := e.Service.Weights.Passing; w > 0 && w <= maxWeight {
		a.weight = float64(w)
	}
	return a.upstream(address), true, err
}

// readMeta reads what an instance tells about itself; other keys are not ours.
func readMeta(meta map[string]string) (a attributes, err error) {
	for _, key := range []string{"cores", "started_at", "stops_at", "preemptible", "draining"} {
		if value, ok := meta[key]; ok {
			err = errors.Join(err, a.set(key, value))
		}
	}
	return a, err
}
