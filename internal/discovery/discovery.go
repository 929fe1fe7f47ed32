// Package discovery finds the upstreams: in a static list, a watched file, DNS
// or Consul. A Discovery asks one of these sources again and again, hands full
// sets on, and keeps the last good one through whatever the source does (see Guard).
package discovery

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"example.org/pilotfish/internal/pool"
)

// Discovery follows one source.
type Discovery struct {
	cfg      Config
	own      own
	origin   origin
	guard    *Guard
	pacer    *pacer
	snapshot *snapshot // nil keeps none

	mu     sync.Mutex
	status Status
}

// New returns a Discovery that has asked nothing yet. It refuses a configuration
// that cannot work, without asking the source. rng spreads the queries; only Run uses it.
func New(cfg Config, rng *rand.Rand) (*Discovery, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	from, err := cfg.origin()
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	guard, err := NewGuard(cfg.Guard)
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	own, err := cfg.own()
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	if len(cfg.Static) > 0 && len(arrange(from.source.(*static).list, own)) == 0 {
		return nil, errors.New("discovery: every upstream of the static list is the sidecar's own address")
	}
	d := &Discovery{cfg: cfg, own: own, origin: from, guard: guard, pacer: newPacer(from.pace, rng)}
	d.status.Source = from.name
	if last := arrange(cfg.Last, own); len(last) > 0 {
		guard.Inherit(last)
		d.status.Upstreams = len(last)
	}
	if cfg.Snapshot != "" {
		d.snapshot = &snapshot{path: cfg.Snapshot, source: from.name, most: cfg.MaxUpstreams}
	}
	return d, nil
}

// Status returns what discovery knows of itself now. It is safe for concurrent use.
func (d *Discovery) Status() Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.status
}

// Run sends the full set of upstreams, sorted by address and free of duplicates,
// whenever it changes; the receiver owns the slice. The first is sent when the
// source was first believed, or was out of reach and there is a snapshot. Run blocks until ctx
// is done, returns its error, and never closes out. It must be called once.
func (d *Discovery) Run(ctx context.Context, out chan<- []pool.Upstream) error {
	var pressing time.Duration // what is left to confirm a doubt
	var failed bool
	for {
		if !sleep(ctx, d.pacer.pause(time.Now(), failed, pressing)) {
			return ctx.Err()
		}
		a, err := d.origin.ask(ctx, pressing)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var ruling Ruling
		ruling, err = d.hear(time.Now(), a, err)
		failed, pressing = err != nil, ruling.Confirm
		if !ruling.Changed {
			continue
		}
		select {
		case out <- slices.Clone(d.guard.Applied()):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// hear takes an answer, or why there is none, and returns what becomes of it.
func (d *Discovery) hear(now time.Time, a answer, err error) (Ruling, error) {
	if n := len(a.upstreams); err == nil && n > d.cfg.MaxUpstreams {
		err = fmt.Errorf("%s names %d upstreams, at most %d are allowed", d.origin.name, n, d.cfg.MaxUpstreams)
	}
	set := arrange(a.upstreams, d.own)
	restored := (err != nil || len(set) == 0) && d.restore()

	var r Ruling
	if err != nil {
		d.guard.Fail()
	} else {
		r = d.guard.Answer(now, set)
	}
	r.Changed = r.Changed || restored
	if r.Changed && !restored {
		d.save(now)
	}
	d.note(now, r, restored, a.flaw, err)
	return r, err
}

// note updates the status and tells the observer.
func (d *Discovery) note(now time.Time, r Ruling, restored bool, flaw, err error) {
	d.mu.Lock()
	s := &d.status
	s.Err, s.Doubt, s.Flaw = err, r.Doubt, flaw
	s.Upstreams = len(d.guard.Applied())
	switch {
	case err != nil:
		s.Failed++
	case r.Doubt != None:
		s.Refused++
	default:
		s.HeardAt = now
	}
	if r.Changed {
		s.Applied++
		s.AppliedAt = now
	}
	s.FromSnapshot = restored || s.FromSnapshot && (err != nil || r.Doubt != None)
	told := *s
	d.mu.Unlock()

	if d.cfg.Observe != nil {
		d.cfg.Observe(told)
	}
}

// sleep waits for d, and returns false when ctx ends it.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
