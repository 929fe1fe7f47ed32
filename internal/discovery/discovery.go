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
	"example.org/pilotfish/internal/settings"
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
	// Last is the current set of the Discovery that this one replaces. It stays
	// in use until a list is accepted. It may be nil.
	Last []pool.Upstream
	// Before is the status of that Discovery. Its counts are not carried over.
	Before Status
	// Changed is called from Run's goroutine when Status.Trouble changes. It
	// must not block. It may be nil.
	Changed func(Status)
	// Resolver resolves DNS names; nil means the system's resolver.
	Resolver Resolver
	// Transport sends the queries to Consul; nil means a default transport that uses no proxy.
	Transport http.RoundTripper
}

// Status is the state of a Discovery.
type Status struct {
	// Source is the name of the source, such as "file /etc/upstreams".
	Source string
	// Upstreams is the number of upstreams in the current set.
	Upstreams int
	// AcceptedAt is when a list of the source was last accepted in full; zero
	// before the first. The time since then is the age of the set.
	AcceptedAt time.Time
	// Trouble describes what is wrong with the last reply or with the snapshot, and the
	// consequence. It is empty if nothing is wrong.
	Trouble string
	// Since is when this trouble began.
	Since time.Time
	// Applied counts changes of the set, Refused the replies in doubt, and Failed
	// the failed queries.
	Applied, Refused, Failed uint64
}

// Text says what is wrong and since when; "" if nothing is wrong.
func (s Status) Text() string {
	if s.Trouble == "" {
		return ""
	}
	return "discovery, since " + settings.Minute(s.Since) + ": " + s.Trouble
}

// Discovery follows one source.
type Discovery struct {
	changed  func(Status)
	self     own
	source   source
	guard    guard
	pacer    pacer
	snapshot *snapshot       // nil if none is configured
	saved    []pool.Upstream // those of the snapshot at the start

	mu     sync.Mutex
	status Status

	publishing sync.Mutex
	apply      func([]pool.Upstream) // of Run; nil when it does not run
	set        []pool.Upstream       // in force
	here       []string              // addresses that lead to this sidecar
}

// New returns a Discovery; Run starts it. The settings must have been checked.
func New(cfg Config) (*Discovery, error) {
	from, err := cfg.configured()[0].open(&cfg)
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	self, err := newOwn(cfg.Self, thisMachine)
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	d := &Discovery{
		changed: cfg.Changed, self: self, source: from,
		guard: guard{emptyAfter: cfg.EmptyAfter}, pacer: pacer{gap: from.gap, rng: cfg.Rand},
		status: Status{Source: from.name, AcceptedAt: cfg.Before.AcceptedAt, Trouble: cfg.Before.Trouble, Since: cfg.Before.Since},
	}
	if cfg.Snapshot != "" {
		d.snapshot = &snapshot{path: cfg.Snapshot, source: from.name}
		d.snapshot.read()
		d.saved = arrange(d.snapshot.content.Upstreams, self)
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

// Run calls changed with the full set of upstreams, sorted by address and without duplicates,
// whenever the set changes; changed may keep it. The first call happens when a list is accepted, or, if there is
// a snapshot, when the first query fails or returns an empty list. Run returns when ctx is done. It must be called once.
func (d *Discovery) Run(ctx context.Context, changed func([]pool.Upstream)) {
	d.publish(func() bool { d.apply, d.set = changed, nil; return false })
	defer d.publish(func() bool { d.apply = nil; return false })
	var confirm time.Duration // how long the source must still confirm a list in doubt
	var failed bool
	for sleep(ctx, d.pacer.pause(time.Now(), failed, confirm)) {
		r, err := d.source.query(ctx, confirm)
		if ctx.Err() != nil {
			return
		}
		if n := len(r.upstreams); err == nil && n > maxUpstreams {
			err = fmt.Errorf("%s names %d upstreams, and at most %d are allowed", d.source.name, n, maxUpstreams)
		}
		result := d.take(time.Now(), r, err)
		failed, confirm = err != nil, result.confirm
		if result.changed {
			d.publish(func() bool { d.set = d.guard.current(); return true })
		}
	}
}

// publish calls change, and if the set has changed, passes it to Run's caller without the addresses that lead to this sidecar.
func (d *Discovery) publish(change func() (changed bool)) {
	d.publishing.Lock()
	defer d.publishing.Unlock()
	if change() && d.apply != nil {
		d.apply(slices.DeleteFunc(slices.Clone(d.set), func(u pool.Upstream) bool { return slices.Contains(d.here, u.Address) }))
	}
}

// maxHere is the maximum number of upstreams that LeadsHere takes out of the set. Further upstreams stay in the set, and
// proxy.Elsewhere closes each connection to them.
const maxHere = 16

// LeadsHere takes an upstream out of the set, because a connection to it reached this sidecar itself. It reports whether it
// did. It does nothing for an upstream that is not in the set or was taken out already, or after maxHere upstreams.
func (d *Discovery) LeadsHere(address string) (was bool) {
	d.publish(func() bool {
		was = d.apply != nil && len(d.here) < maxHere && !slices.Contains(d.here, address) &&
			slices.ContainsFunc(d.set, func(u pool.Upstream) bool { return u.Address == address })
		if was {
			d.here = append(d.here, address)
		}
		return was
	})
	return was
}

// take applies a reply, or records the failure.
func (d *Discovery) take(now time.Time, r reply, err error) verdict {
	set := arrange(r.upstreams, d.self)
	restored := (err != nil || len(set) == 0) && d.guard.good == nil && len(d.saved) > 0
	if restored {
		d.guard.good, d.guard.applied = d.saved, d.saved
	}
	var result verdict
	if err != nil {
		d.guard.fail()
	} else {
		result = d.guard.decide(now, set)
	}
	if result.changed && !restored && d.snapshot != nil {
		set := d.guard.current()
		d.snapshot.write(func(c *content) { c.Upstreams = set })
	}
	result.changed = result.changed || restored
	d.note(now, result, r, err)
	return result
}

// note updates the status, and calls Config.Changed if Status.Trouble has changed.
func (d *Discovery) note(now time.Time, result verdict, r reply, err error) {
	trouble := d.trouble(result, r, err)
	d.mu.Lock()
	s := &d.status
	news := s.Trouble != trouble
	if news {
		s.Since = now
	}
	s.Trouble, s.Upstreams = trouble, len(d.guard.current())
	switch {
	case err != nil:
		s.Failed++
	case result.doubt != none:
		s.Refused++
	default:
		s.AcceptedAt = now
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

// sleep waits for d, and reports false if ctx is done.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
