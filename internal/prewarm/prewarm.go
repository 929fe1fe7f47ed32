// Package prewarm has the data of an upstream's busiest projects fetched
// elsewhere while that upstream still runs, once it is known that it will go.
package prewarm

import (
	"context"
	"sync"
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
)

// Prefetch is one project's data to be fetched by one upstream.
type Prefetch struct {
	Project  string
	Upstream string // that fetches
	Leaving  string // that had most of the project's jobs
}

// Prewarmer watches for upstreams that leave. Its methods are safe for
// concurrent use.
type Prewarmer struct {
	cfg  Config
	sets chan []pool.Upstream // the last one that Run has not seen

	mu   sync.Mutex
	book *book
}

// New returns a Prewarmer that has seen no job yet.
func New(cfg Config) (*Prewarmer, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Prewarmer{cfg: cfg, sets: make(chan []pool.Upstream, 1), book: newBook()}, nil
}

// Note counts a job that an upstream answered. Jobs without a project, whose
// key is 0, are not counted.
func (p *Prewarmer) Note(upstream string, key uint64, project intake.Text) {
	if key == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.book.note(time.Now(), upstream, key, project)
}

// Follow takes the set of upstreams, which it does not change. One goroutine
// may call it.
func (p *Prewarmer) Follow(set []pool.Upstream) {
	select {
	case <-p.sets: // has not been seen, and is over
	default:
	}
	p.sets <- set
}

// Run acts on what leaves until ctx ends. When it returns, no prefetch is
// under way. Call it once.
func (p *Prewarmer) Run(ctx context.Context) {
	var sending sync.WaitGroup
	defer sending.Wait()
	tick := time.NewTicker(p.cfg.Gap)
	defer tick.Stop()
	var set []pool.Upstream
	known := map[string]bool{} // what leaves, and was acted on
	waiting := newQueue(p.cfg.Gap)
	for {
		select {
		case <-ctx.Done():
			return
		case set = <-p.sets:
		case <-tick.C:
		}
		now := time.Now()
		leaving := p.leaving(now, set)
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

// leaving is the upstreams that drain or will have stopped after a notice.
func (p *Prewarmer) leaving(now time.Time, set []pool.Upstream) map[string]bool {
	leaving := map[string]bool{}
	for i := range set {
		u := &set[i]
		if u.Draining || !u.StopsAt.IsZero() && u.StopsAt.Before(now.Add(p.cfg.Notice)) {
			leaving[u.Address] = true
		}
	}
	return leaving
}

// looked bounds how many projects are looked at for each that is fetched:
// those of one upstream that are cached elsewhere, too, need nothing.
const looked = 10

// plan is what to fetch when the upstream at leaving goes.
func (p *Prewarmer) plan(now time.Time, leaving string) (plan []Prefetch) {
	p.mu.Lock()
	busiest := p.book.busiest(now, leaving)
	p.mu.Unlock()
	for _, t := range busiest[:min(len(busiest), looked*p.cfg.Projects)] {
		if len(plan) == p.cfg.Projects {
			break
		}
		if heir := p.cfg.Heir(t.key, leaving); heir != "" {
			plan = append(plan, Prefetch{Project: t.id.String(), Upstream: heir, Leaving: leaving})
		}
	}
	return plan
}
