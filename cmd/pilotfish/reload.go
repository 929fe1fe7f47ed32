package main

import (
	"time"

	"go.uber.org/zap"

	"pilotfish/internal/config"
)

// reload puts a new configuration in the place of the running one, whole. The
// pool's state and the open jobs are untouched. What needs a restart is told.
func (s *sidecar) reload(cfg *config.Config) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.newGeneration(cfg, s.current.Load())
	if err != nil {
		return err
	}
	before := s.current.Swap(g)
	before.stop()
	s.balancer.SetStale(stale(cfg))
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
		{"selection", s.first.Selection != cfg.Selection},
		{"overload", s.first.Overload != cfg.Overload},
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

// stale is the age at which a report's load no longer counts.
func stale(cfg *config.Config) time.Duration { return 3 * cfg.Reports.Interval }
