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
	settings, err := poolSettings(cfg)
	if err != nil {
		return err
	}
	before := s.current.Load()
	g, err := s.newGeneration(cfg, before)
	if err != nil {
		return err
	}
	if cfg.Overload == before.cfg.Overload {
		settings.Detector = nil // keep what the detectors have seen
	}
	s.current.Store(g)
	before.stop()
	s.balancer.SetSettings(settings, cfg.Retry, cfg.Projects)
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
		{"admin_write", s.first.AdminWrite != cfg.AdminWrite},
		{"reuse_port", s.first.ReusePort != cfg.ReusePort},
		{"mesh", s.first.Mesh != cfg.Mesh},
		{"breaker", s.first.Breaker != cfg.Breaker},
		{"queue", s.first.Queue != cfg.Queue},
		{"prewarm", s.first.Prewarm != cfg.Prewarm},
		{"capture", s.first.Capture != cfg.Capture},
		{"debug", s.first.Debug != cfg.Debug},
	} {
		if fixed.changed {
			s.log.Warn("a change waits for a restart", zap.String("key", fixed.key))
		}
	}
	return nil
}

// poolSettings is what the pool picks by.
func poolSettings(cfg *config.Config) (s pool.Settings, err error) {
	s.Interval = cfg.Reports.Interval
	if s.Policy, err = rivals.New(cfg.Selection.Policy); err != nil {
		return s, err
	}
	s.Detector, err = overload.New(cfg.Overload.Policy, cfg.Overload.Stalled)
	return s, err
}
