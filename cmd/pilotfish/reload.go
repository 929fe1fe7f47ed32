package main

import (
	"bytes"
	"cmp"
	"context"
	"reflect"
	"strings"
	"time"

	"go.uber.org/zap"

	"example.org/pilotfish/internal/balancer"
	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/config"
	"example.org/pilotfish/internal/files"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/selection"
)

// reread reads the configuration again and applies it; a bad one changes nothing.
// It returns the keys whose changes wait for a restart.
func (s *sidecar) reread() (waiting []string, err error) {
	s.mu.Lock() // so that concurrent reloads apply in the order in which they read
	defer s.mu.Unlock()
	cfg, warnings, err := s.from.read()
	warn(s.log.Logger, warnings)
	if err == nil {
		waiting, err = s.reload(&cfg)
	}
	s.metrics.Reloaded(err == nil)
	if err != nil {
		refused := s.refuse(time.Now(), err)
		s.log.Error("configuration refused: the previous one stays in force", zap.String("cause", refused.why))
		return nil, refused
	}
	s.refused.Store(nil)
	s.log.Info("the configuration was reloaded")
	for _, key := range waiting {
		s.log.Warn("a change needs a restart", zap.String("key", key))
	}
	return waiting, nil
}

// refusedFile is a configuration that cannot be used, while the previous one is in force.
type refusedFile struct {
	since time.Time // of the first refusal for this reason
	why   string
}

func (r *refusedFile) Error() string {
	return "configuration refused since " + settings.Minute(r.since) + ", the previous one stays in force: " + r.why
}

// refuse records that the configuration cannot be used, until one is reloaded.
func (s *sidecar) refuse(now time.Time, why error) *refusedFile {
	r := &refusedFile{now, strings.ReplaceAll(why.Error(), "\n", "; ")}
	if before := s.refused.Load(); before != nil && before.why == r.why {
		r.since = before.since
	}
	s.refused.Store(r)
	return r
}

// reload replaces the running configuration. Open jobs and the state of upstreams are not
// affected, except that overload detection starts again if its settings changed. reload returns
// the keys whose changes need a restart. The mutex must be held.
func (s *sidecar) reload(cfg *config.Config) (waiting []string, err error) {
	inPool, err := poolSettings(cfg)
	if err != nil {
		return nil, err
	}
	before := s.current.Load()
	g, err := s.newGeneration(cfg, before)
	if err != nil {
		return nil, err
	}
	if cfg.Overload == before.cfg.Overload {
		inPool.Detector = nil // keep the state of the detectors
	}
	if err := s.log.Level.UnmarshalText([]byte(cfg.Log.Level)); err != nil {
		return nil, err
	}
	s.budget.Resize(s.bodies(cfg))
	s.current.Store(g)
	before.stop()
	s.balancer.SetSettings(balancer.Settings{
		Pool: inPool, Retry: cfg.Retry, Queue: s.queue(cfg), Projects: cfg.Projects,
	})
	if s.running != nil {
		s.startGeneration(g)
	}
	return s.waiting(cfg), nil
}

// waiting returns the changed keys that need a restart. A reload cannot change open ports or the spans of open jobs.
func (s *sidecar) waiting(cfg *config.Config) (keys []string) {
	was, is := reflect.ValueOf(s.first), reflect.ValueOf(*cfg)
	for _, field := range []string{"Listen", "Admin", "Submitters", "Mesh", "Metrics", "Tracing"} {
		if was.FieldByName(field).Interface() != is.FieldByName(field).Interface() {
			keys = append(keys, strings.ToLower(field))
		}
	}
	if s.first.Log.Bodies != cfg.Log.Bodies || s.first.Log.BodiesSize != cfg.Log.BodiesSize {
		keys = append(keys, "log.bodies")
	}
	return keys
}

// watchFile reloads the configuration after changes of its file, while the key watch is set.
func (s *sidecar) watchFile(ctx context.Context) {
	const idle = 5 * time.Second // how often the key watch is checked while it is 0
	before, last := s.from.first, s.from.first
	for {
		every := s.current.Load().cfg.Watch
		select {
		case <-ctx.Done():
			return
		case <-time.After(cmp.Or(every, idle)):
		}
		if every == 0 {
			continue
		}
		now, err := files.Read(s.from.path, cli.MaxFile)
		if err != nil {
			now = []byte(err.Error()) // counts as a change: the reload will log the error
		}
		whole := bytes.Equal(now, last) // two equal reads, so nobody is writing it
		last = now
		if whole && !bytes.Equal(now, before) {
			before = now
			_, _ = s.reread() // it logs what is wrong
		}
	}
}

func poolSettings(cfg *config.Config) (s pool.Settings, err error) {
	s.Interval, s.Breaker, s.Heavy = cfg.Reports.Interval, cfg.Breaker, cfg.Selection.Heavy
	s.Probe, s.Withdraw = cfg.Reports.Probes(), cfg.Job.WithdrawPath != ""
	if s.Policy, err = selection.New(cfg.Selection.Policy); err != nil {
		return s, err
	}
	if name := cfg.Selection.Shadow; name != "" {
		s.Shadow = &pool.Shadow{Rand: newRand()}
		if s.Shadow.Policy, err = selection.New(name); err != nil {
			return s, err
		}
	}
	s.Detector, err = cfg.Overload.Detector()
	return s, err
}

// warn logs warnings about a configuration.
func warn(log *zap.Logger, warnings []*cli.Error) {
	for _, w := range warnings {
		log.Warn("configuration", zap.String("warning", w.Text), zap.String("file", w.File), zap.Int("line", w.Line))
	}
}
