// Package discovery finds the upstreams in a static list, a file, DNS, Consul or Kubernetes. A Discovery polls one of these sources and reports the full
// set of upstreams whenever it changes. If the source fails or returns an implausible
// set, it keeps the last good set (see guard).
package discovery

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"example.org/pilotfish/internal/pool"
)

// maxUpstreams is the maximum size of a set. A larger reply counts as a failure.
const maxUpstreams = 10_000

// Config is the configuration of a Discovery.
type Config struct {
	Settings
	// Rand spreads the queries over time. Only Run uses it.
	Rand *rand.Rand
	// Self are the addresses on which the sidecar itself listens. An upstream
	// among them is left out, because it would be a loop. An unspecified host
	// stands for all of this machine's addresses.
	Self []string
	// Last is the set in force of the Discovery that this one replaces. It is
	// the last good set here, until the source is believed. Nil is none.
	Last []pool.Upstream
	// Before is what that one told of itself. Its counts begin anew.
	Before Status
	// Changed is called from Run's goroutine when Status.Trouble has changed. It
	// must not block. Nil is not called.
	Changed func(Status)
	// Resolver resolves the names of DNS; nil is the system's.
	Resolver Resolver
	// Transport carries the queries to Consul; nil is a plain one without proxy.
	Transport http.RoundTripper
}

// Status is the state of a Discovery. The age of the set is the time since
// BelievedAt.
type Status struct {
	// Source names where upstreams come from.
	Source string
	// Upstreams counts the set in force.
	Upstreams int
	// BelievedAt is when the source last gave a reply that was believed in
	// full; zero before the first.
	BelievedAt time.Time
	// Trouble says what is wrong with the source's last reply, or with the snapshot, and
	// what that means; "" is nothing.
	Trouble string
	// Applied counts changes of the set, Refused the replies in doubt, Failed
	// the replies that did not come.
	Applied, Refused, Failed uint64
}

// Discovery follows one source.
type Discovery struct {
	changed  func(Status)
	self     map[string]bool // addresses
	origin   origin
	guard    guard
	pacer    pacer
	snapshot *snapshot       // nil keeps none
	saved    []pool.Upstream // what the snapshot had at the start
	unkept   error           // why the snapshot could not be read or written last

	mu     sync.Mutex
	status Status
}

// New returns a Discovery; Run starts it. The settings must have been checked.
func New(cfg Config) (*Discovery, error) {
	from, err := cfg.given()[0].open(&cfg)
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	self, err := selfAddresses(cfg.Self, localHosts)
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	d := &Discovery{
		changed: cfg.Changed, self: self, origin: from,
		guard: guard{emptyAfter: cfg.EmptyAfter}, pacer: pacer{gap: from.gap, rng: cfg.Rand},
		status: Status{Source: from.name, BelievedAt: cfg.Before.BelievedAt, Trouble: cfg.Before.Trouble},
	}
	if cfg.Snapshot != "" {
		d.snapshot = &snapshot{path: cfg.Snapshot, Source: from.name}
		d.saved, d.unkept = d.snapshot.read()
		d.saved = arrange(d.saved, self)
	}
	if last := arrange(cfg.Last, self); len(last) > 0 {
		d.guard.good, d.status.Upstreams = last, len(last)
	}
	return d, nil
}

// Status returns the current status. It is safe for concurrent use.
func (d *Discovery) Status() Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.status
}

// Run calls changed with the full set of upstreams, sorted by address and free of duplicates,
// whenever it changes; the set is changed's own. It does so first once the source is believed, or
// once the source is out of reach and there is a snapshot. Run ends with ctx. It must be called once.
func (d *Discovery) Run(ctx context.Context, changed func([]pool.Upstream)) {
	var confirm time.Duration // how long a doubt must still be confirmed
	var failed bool
	for sleep(ctx, d.pacer.pause(time.Now(), failed, confirm)) {
		r, err := d.origin.ask(ctx, confirm)
		if ctx.Err() != nil {
			return
		}
		if n := len(r.upstreams); err == nil && n > maxUpstreams {
			err = fmt.Errorf("%s names %d upstreams, and at most %d are allowed", d.origin.name, n, maxUpstreams)
		}
		result := d.take(time.Now(), r, err)
		failed, confirm = err != nil, result.confirm
		if result.changed {
			changed(slices.Clone(d.guard.inForce()))
		}
	}
}

// take applies a reply, or records the failure.
func (d *Discovery) take(now time.Time, r reply, err error) ruling {
	set := arrange(r.upstreams, d.self)
	restored := (err != nil || len(set) == 0) && d.guard.good == nil && len(d.saved) > 0
	if restored {
		d.guard.good, d.guard.applied = d.saved, d.saved
	}
	var result ruling
	if err != nil {
		d.guard.fail()
	} else {
		result = d.guard.judge(now, set)
	}
	if result.changed && !restored && d.snapshot != nil {
		d.unkept = d.snapshot.write(d.guard.inForce())
	}
	result.changed = result.changed || restored
	d.note(now, result, r, err)
	return result
}

// note updates the status, and calls Config.Changed if Status.Trouble has changed.
func (d *Discovery) note(now time.Time, result ruling, r reply, err error) {
	trouble := d.trouble(result, r, err)
	d.mu.Lock()
	s := &d.status
	news := s.Trouble != trouble
	s.Trouble, s.Upstreams = trouble, len(d.guard.inForce())
	switch {
	case err != nil:
		s.Failed++
	case result.doubt != none:
		s.Refused++
	default:
		s.BelievedAt = now
	}
	if result.changed {
		s.Applied++
	}
	status := *s
	d.mu.Unlock()

	if news && d.changed != nil {
		d.changed(status)
	}
}

// sleep waits for d, and returns false when ctx ends it.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
