package main

import (
	"go.uber.org/zap"

	"example.org/pilotfish/internal/config"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/overload"
	"example.org/pilotfish/pkg/selection/rivals"
)

// reload puts a new configuration in the place of the running one, whole. The
// open jobs and what is known of upstreams are untouched; overload detection
// begins anew where it changed. What needs a restart is told.
func (s *sidecar) reload(cfg *config.Config) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := rules(cfg)
	if err != nil {
		return err
	}
	before := s.current.Load()
	g, err := s.newGeneration(cfg, before)
	if err != nil {
		return err
	}
	if cfg.Overload == before.cfg.Overload {
		r.Detector = nil
	}
	s.current.Store(g)
	before.stop()
	s.balancer.SetRules(r, cfg.Retry)
	if s.running != nil {
		s.startGeneration(g)
	}
	if err := s.level.UnmarshalText([]byte(cfg.Log.Level)); err != nil {
		return err
	}
	for _, fixed := range []struct {
		key     string
		changed bool
	}{
		{"listen", s.first.Listen != cfg.Listen},
		{"admin", s.first.Admin != cfg.Admin},
		{"reuse_port", s.first.ReusePort != cfg.ReusePort},
		{"breaker", s.first.Breaker != cfg.Breaker},
		{"queue", s.first.Queue != cfg.Queue},
		{"prewarm", s.first.Prewarm != cfg.Prewarm},
		{"debug", s.first.Debug != cfg.Debug},
	} {
		if fixed.changed {
			s.log.Warn("a change waits for a restart", zap.String("key", fixed.key))
		}
	}
	return nil
}

// rules is what the pool picks by.
func rules(cfg *config.Config) (r pool.Rules, err error) {
	r.Interval = cfg.Reports.Interval
	if r.Policy, err = rivals.New(cfg.Selection.Policy); err != nil {
		return r, err
	}
	r.Detector, err = overload.New(cfg.Overload.Policy, cfg.Overload.Stalled)
	return r, err
}
