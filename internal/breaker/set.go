package breaker

import (
	"errors"
	"math/rand/v2"
	"time"

	"example.org/pilotfish/internal/settings"
)

// Config is what a Set is made of.
type Config struct {
	Settings
	// Rand draws the jitter; required. Only the Set may use it.
	Rand *rand.Rand
}

// Set holds the breakers of all upstreams.
type Set struct {
	cfg      Config
	breakers map[string]*Breaker
	left     map[string]time.Time // when the upstreams left whose breakers are still kept
}

// New returns a Set without any breaker yet.
func New(cfg Config) (*Set, error) {
	var f settings.Faults
	cfg.Check(f.In("breaker"))
	if err := f.Err(); err != nil {
		return nil, err
	}
	if cfg.Rand == nil {
		return nil, errors.New("breaker: Rand is required")
	}
	return &Set{cfg: cfg, breakers: make(map[string]*Breaker), left: make(map[string]time.Time)}, nil
}

// SetSettings makes all breakers judge by other settings from now on. What they have
// seen stays, and so does the time until which one is open.
func (s *Set) SetSettings(settings Settings) {
	s.cfg.Settings = settings
	for _, b := range s.breakers {
		b.settings = settings
	}
}

// Join returns the breaker of the upstream that joins at address, closed if it is new.
func (s *Set) Join(address string) *Breaker {
	delete(s.left, address)
	b, ok := s.breakers[address]
	if !ok {
		b = &Breaker{settings: s.cfg.Settings, rng: s.cfg.Rand}
		s.breakers[address] = b
	}
	return b
}

// Leave notes that the upstream at address left at now. Its breaker is kept
// for OpenMax: an upstream that keeps failing is not forgiven for registering
// again. One that never opened is dropped at once.
func (s *Set) Leave(now time.Time, address string) {
	if _, ok := s.breakers[address]; ok {
		s.left[address] = now
	}
	for old, at := range s.left {
		if now.Sub(at) >= s.cfg.OpenMax || s.breakers[old].trips == 0 {
			delete(s.breakers, old)
			delete(s.left, old)
		}
	}
}
