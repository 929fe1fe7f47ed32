// Package prewarm prepares for an upstream that will leave: while it still runs,
// other upstreams fetch the data of its busiest projects.
package prewarm

import (
	"context"
	"sync"
	"time"

	"example.org/pilotfish/internal/pool"
)

const (
	// notice is how long before its end an upstream counts as leaving.
	notice = 30 * time.Second
	// candidates bounds the projects that are considered for each one that is
	// fetched. A project that is cached elsewhere too is not fetched.
	candidates = 10
)

// Prewarmer watches for upstreams that leave. With Settings.Projects at 0 it does
// nothing. Its methods are safe for concurrent use.
type Prewarmer struct {
	cfg  Config               // settings below holds its Settings
	sets chan []pool.Upstream // the newest set that Run has not taken yet

	mu       sync.Mutex
	settings Settings
}

// New returns a Prewarmer, or says what is wrong with the Config.
func New(cfg Config) (*Prewarmer, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	return &Prewarmer{cfg: cfg, settings: cfg.Settings, sets: make(chan []pool.Upstream, 1)}, nil
}

// SetSettings replaces the settings from the next notice on. They must have been checked.
func (p *Prewarmer) SetSettings(s Settings) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settings = s
}

// Follow takes the set of upstreams, which it does not change. One goroutine
// may call it.
func (p *Prewarmer) Follow(set []pool.Upstream) {
	select {
	case <-p.sets: // replaced before Run took it
	default:
	}
	p.sets <- set
}

// Run sends prefetches for upstreams that leave until ctx ends. When it returns,
// no prefetch is under way. Call it once.
func (p *Prewarmer) Run(ctx context.Context) {
	var sending sync.WaitGroup
	defer sending.Wait()
	tick := time.NewTicker(gap)
	defer tick.Stop()
	var set []pool.Upstream
	known := map[string]bool{} // upstreams that leave and were planned for
	waiting := newPending()
	for {
		select {
		case <-ctx.Done():
			return
		case set = <-p.sets:
		case <-tick.C:
		}
		now := time.Now()
		leaving := leavingOf(set, now)
		for address := range leaving {
			if !known[address] {
				waiting.add(p.plan(now, address))
			}
		}
		known = leaving
		for _, f := range waiting.due(now) {
			sending.Go(func() { p.cfg.Observe(f, p.send(ctx, f)) })
		}
	}
}

// leavingOf returns the addresses of the upstreams that drain, or that end
// within a notice.
func leavingOf(set []pool.Upstream, now time.Time) map[string]bool {
	leaving := map[string]bool{}
	for i := range set {
		u := &set[i]
		if u.Draining || !u.StopsAt.IsZero() && u.StopsAt.Before(now.Add(notice)) {
			leaving[u.Address] = true
		}
	}
	return leaving
}

// plan lists what to fetch because the upstream at leaving goes.
func (p *Prewarmer) plan(now time.Time, leaving string) (plan []Prefetch) {
	p.mu.Lock()
	projects, path := p.settings.Projects, p.settings.Path
	p.mu.Unlock()
	if projects == 0 {
		return nil
	}
	for _, b := range p.cfg.Busiest(now, leaving, candidates*projects) {
		if len(plan) == projects {
			break
		}
		if to := p.cfg.Successor(b.Key, leaving); to != "" {
			plan = append(plan, Prefetch{Project: b.Name, Upstream: to, Leaving: leaving, path: path})
		}
	}
	return plan
}
