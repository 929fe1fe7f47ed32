// Package balancer is the shell around pool and admission: one mutex, one
// clock read per event, and the waiting that those machines do not do. Hooks
// run after the mutex is released.
package balancer

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"example.org/pilotfish/internal/admission"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

// Config says what a balancer guards.
type Config struct {
	Pool  *pool.Pool       // required
	Queue *admission.Queue // required
	// Wait is how long a job waits for an eligible upstream when it does not
	// say itself; default 10 s.
	Wait time.Duration
	// Hooks observe; each may be nil.
	Hooks Hooks
}

// Hooks are called after the mutex is released, from any goroutine.
type Hooks struct {
	// Queued and Left follow a job that waits: Left is called once for each Queued.
	Queued func(p selection.Priority)
	Left   func(p selection.Priority, waited time.Duration)
	// Picked follows each claim.
	Picked func(c selection.Cache, took time.Duration, panicking bool)
	// Joined and Gone follow the membership.
	Joined func(addresses []string)
	Gone   func(addresses []string)
}

// Balancer lets many goroutines claim from one pool.
type Balancer struct {
	hooks Hooks
	wait  time.Duration

	mu      sync.Mutex
	pool    *pool.Pool
	queue   *admission.Queue
	ready   bool // a first set was applied
	waiters map[*admission.Entry]*waiter
	wake    chan struct{} // tells Run that jobs wait
}

// New returns a balancer; its Run must be running for waiting jobs to be
// served when only time has passed.
func New(cfg Config) (*Balancer, error) {
	if cfg.Pool == nil || cfg.Queue == nil {
		return nil, errors.New("balancer: Pool and Queue are required")
	}
	if cfg.Wait == 0 {
		cfg.Wait = 10 * time.Second
	}
	if cfg.Wait < 0 {
		return nil, fmt.Errorf("balancer: Wait %v must be positive", cfg.Wait)
	}
	return &Balancer{
		hooks:   cfg.Hooks,
		wait:    cfg.Wait,
		pool:    cfg.Pool,
		queue:   cfg.Queue,
		waiters: make(map[*admission.Entry]*waiter),
		wake:    make(chan struct{}, 1),
	}, nil
}

// Set replaces the pool's membership by a full set.
func (b *Balancer) Set(upstreams []pool.Upstream) {
	b.mu.Lock()
	now := time.Now()
	joined, left := b.pool.Set(now, upstreams)
	b.ready = true
	served := b.serve(now)
	b.mu.Unlock()
	b.tell(served)
	if len(joined) > 0 && b.hooks.Joined != nil {
		b.hooks.Joined(joined)
	}
	if len(left) > 0 && b.hooks.Gone != nil {
		b.hooks.Gone(left)
	}
}

// Report hands an upstream's report to the pool.
func (b *Balancer) Report(address string, r pool.Report) {
	b.mu.Lock()
	now := time.Now()
	b.pool.Report(now, address, r)
	served := b.serve(now)
	b.mu.Unlock()
	b.tell(served)
}

// Listing hands what an upstream had cached at an instant to the pool, where
// it does not come with a report.
func (b *Balancer) Listing(address string, at time.Time, cached pool.CacheSet) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pool.Listing(at, address, cached)
}

// SetRules makes the pool pick by other rules, for the jobs that wait as well.
func (b *Balancer) SetRules(r pool.Rules) {
	b.mu.Lock()
	b.pool.SetRules(r)
	served := b.serve(time.Now())
	b.mu.Unlock()
	b.tell(served)
}

// Ready reports whether a first set of upstreams was applied and is not empty.
func (b *Balancer) Ready() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ready && b.pool.Len() > 0
}

// States lists the upstreams, by address.
func (b *Balancer) States() []pool.State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pool.States(time.Now())
}

// Explain ranks the eligible upstreams for a job without claiming one.
func (b *Balancer) Explain(r pool.Request) ([]pool.Ranked, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pool.Explain(time.Now(), r)
}

// Heir is the upstream that a project falls to when the one at leaving goes,
// "" when there is nothing to fetch.
func (b *Balancer) Heir(project uint64, leaving string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pool.Heir(time.Now(), project, leaving)
}

// Counts are how many jobs are in flight and how many wait.
func (b *Balancer) Counts() (inFlight, waiting int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pool.InFlight(), b.queue.Len()
}
