package discovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/consul/api"
)

// consul asks an agent for the passing instances of a service, with
// queries that block until the catalogue's index moves.
type consul struct {
	cfg      ConsulConfig
	lifetime time.Duration
	client   *api.Client
	index    uint64 // of the last answer; 0 asks without blocking
}

func newConsul(cfg ConsulConfig, lifetime time.Duration) (origin, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return origin{}, err
	}
	client, address, err := newConsulClient(cfg)
	if err != nil {
		return origin{}, fmt.Errorf("consul: %w", err)
	}
	name := "consul service " + cfg.Service
	if cfg.Tag != "" {
		name += " tag " + cfg.Tag
	}
	return origin{
		source: &consul{cfg: cfg, lifetime: lifetime, client: client},
		name:   name + " at " + address,
		// One query is saved up so that the change that ends a long wait is
		// followed at once by the next wait.
		pace: pace{gap: shortest, saved: 1, retryMax: longestRetry},
	}, nil
}

func (c *consul) ask(ctx context.Context, atMost time.Duration) (answer, error) {
	entries, meta, err := c.query(ctx, atMost)
	if err != nil {
		c.index = 0 // whoever answers next may count otherwise
		return answer{}, err
	}
	c.index = nextIndex(c.index, meta.LastIndex)
	return c.read(entries), nil
}

func (c *consul) query(ctx context.Context, atMost time.Duration) ([]*api.ServiceEntry, *api.QueryMeta, error) {
	opts := &api.QueryOptions{
		Datacenter: c.cfg.Datacenter,
		Namespace:  c.cfg.Namespace,
		AllowStale: c.cfg.Stale,
	}
	if c.cfg.TokenFile != "" {
		var err error
		if opts.Token, err = readToken(c.cfg.TokenFile); err != nil {
			return nil, nil, err
		}
	}
	limit := c.cfg.Timeout
	if c.index > 0 {
		opts.WaitIndex, opts.WaitTime = c.index, c.cfg.Wait
		if atMost > 0 {
			opts.WaitTime = min(c.cfg.Wait, max(atMost, time.Second))
		}
		limit += opts.WaitTime + opts.WaitTime/16 // by which agents spread the ends of waits
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	entries, meta, err := c.client.Health().Service(c.cfg.Service, c.cfg.Tag, true, opts.WithContext(ctx))
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, nil, fmt.Errorf("ask consul: no answer within %s: %w", limit, ctx.Err())
	case err != nil:
		return nil, nil, fmt.Errorf("ask consul: %w", brief(err))
	case leaderless(meta):
		return nil, nil, errors.New("ask consul: the answer is of a server that knows no leader")
	case len(entries) == 0 && meta.ResultsFilteredByACLs:
		return nil, nil, errors.New("ask consul: the ACL token may not read the service or its nodes")
	}
	return entries, meta, nil
}

// nextIndex is what to wait for after an answer with the index got. An index that went back
// is of another catalogue, and to wait for it could miss changes; a missing one reads
// as 0. Both ask anew, without waiting.
func nextIndex(before, got uint64) uint64 {
	if got < before {
		return 0
	}
	return got
}

// leaderless says whether the server that answered knows of no leader. A client agent that
// answers out of its streamed view never says that it knows one.
func leaderless(m *api.QueryMeta) bool {
	return !m.KnownLeader && m.QueryBackend != api.QueryBackendStreaming
}
