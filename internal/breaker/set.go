// Package breaker keeps one circuit breaker for each upstream, behind the
// gate that the pool declares: after repeated failure an upstream gets no job
// for a while, then one job as a probe, and its share again once that works.
//
// The state machine is gobreaker's. The gate around it adds what that leaves
// out: an open time that grows and is not the same everywhere, a question
// without side effects, and a half-open state that no lost verdict can wedge.
package breaker

import (
	"math/rand/v2"
	"sync"
	"time"

	"example.org/pilotfish/internal/pool"
)

// Set holds the breakers of all upstreams. It is safe for concurrent use.
type Set struct {
	config  Config
	changed func(address string, from, to State)

	mu    sync.Mutex
	rng   *rand.Rand
	gates map[string]*gate
	left  map[string]time.Time // when upstreams left whose breaker is still remembered
}

// New returns a Set without any breaker yet. It seeds each breaker from rng
// and does not share it.
//
// changed, unless nil, is told of every transition, once and for each
// upstream in order, on the goroutine of the Enter or done that made it. No
// lock of this package is held then, but the caller's may be: changed must
// not block, nor call what calls Enter or done.
func New(config Config, rng *rand.Rand, changed func(address string, from, to State)) (*Set, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	if changed == nil {
		changed = func(string, State, State) {}
	}
	return &Set{
		config:  config,
		changed: changed,
		rng:     rand.New(rand.NewPCG(rng.Uint64(), rng.Uint64())),
		gates:   make(map[string]*gate),
		left:    make(map[string]time.Time),
	}, nil
}

// Gate returns the breaker of the upstream at address, closed if it is new.
func (s *Set) Gate(address string) pool.Gate {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.left, address)
	g, ok := s.gates[address]
	if !ok {
		rng := rand.New(rand.NewPCG(s.rng.Uint64(), s.rng.Uint64()))
		g = newGate(address, s.config, rng, s.changed)
		s.gates[address] = g
	}
	return g
}

// Status returns what is known of the breaker of the upstream at address; ok
// is false when there is none. It changes nothing.
func (s *Set) Status(address string) (status Status, ok bool) {
	s.mu.Lock()
	g, ok := s.gates[address]
	s.mu.Unlock()
	if !ok {
		return Status{}, false
	}
	return g.status(), true
}

// Forget notes that the upstream at address left at now. Its breaker is kept
// for OpenMax: one that keeps failing must not be forgiven for registering anew.
func (s *Set) Forget(now time.Time, address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.gates[address]; ok {
		s.left[address] = now
	}
	for old, at := range s.left {
		if now.Sub(at) >= s.config.OpenMax || s.gates[old].spotless() {
			delete(s.gates, old)
			delete(s.left, old)
		}
	}
}
