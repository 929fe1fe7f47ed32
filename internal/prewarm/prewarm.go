// Package prewarm prepares for an upstream that will leave: while it still runs,
// other upstreams fetch the data of its busiest projects.
package prewarm

import (
	"context"
	"sync"
	"time"

	"example.org/pilotfish/internal/intake"
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
	counts   *counts
}

// New returns a Prewarmer that has seen no job yet, or says what is wrong with
// the Config.
func New(cfg Config) (*Prewarmer, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	return &Prewarmer{cfg: cfg, settings: cfg.Settings, sets: make(chan []pool.Upstream, 1), counts: newCounts()}, nil
}

// SetSettings replaces the settings from the next notice on. They must have been checked.
func (p *Prewarmer) SetSettings(s Settings) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settings = s
}

// Note counts a job that an upstream answered. Jobs without a project, whose
// key is 0, are not counted.
func (p *Prewarmer) Note(upstream string, key uint64, project intake.Text) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if key == 0 || p.settings.Projects == 0 {
		return
	}
	p.counts.note(time.Now(), upstream, key, project)
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
	busiest := p.counts.busiest(now, leaving)
	p.mu.Unlock()
	for _, c := range busiest[:min(len(busiest), candidates*projects)] {
		if len(plan) == projects {
			break
		}
		if to := p.cfg.Successor(c.key, leaving); to != "" {
			plan = append(plan, Prefetch{Project: c.id.String(), Upstream: to, Leaving: leaving, path: path})
		}
	}
	return plan
}
