package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/config"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/logging"
	"example.org/pilotfish/internal/metrics"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/fakeupstream"
)

// patience is the maximum duration of a wait.
const patience = 2 * time.Minute

// fileConfig returns a configuration whose upstream is listed in a file.
func fileConfig(t *testing.T, address string) (cfg config.Config, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "upstreams")
	require.NoError(t, os.WriteFile(path, []byte(address+"\n"), 0o600))
	cfg = before()
	cfg.Discovery.File = path
	return cfg, path
}

func logged(t *testing.T, cfg *config.Config) (*sidecar, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zapcore.InfoLevel)
	log := quiet(t)
	log.Logger = zap.New(core)
	s, err := newSidecar(cfg, nil, source{}, log)
	require.NoError(t, err)
	return s, logs
}

// A reload while discovery is unreachable keeps the upstreams, and polling continues.
func TestReportsGoOnAfterAReloadWithoutDiscovery(t *testing.T) {
	upstream := fakeupstream.New(t, fakeupstream.Options{})
	cfg, path := fileConfig(t, upstream.Address())
	s, _ := logged(t, &cfg)
	s.start(t.Context())
	defer s.stop()
	reported := func(running int) func() bool {
		upstream.SetLoad(running, 0)
		return func() bool {
			states := s.balancer.States()
			return len(states) == 1 && states[0].Running == float64(running)
		}
	}
	require.Eventually(t, reported(5), patience, time.Millisecond)

	require.NoError(t, os.Remove(path))
	requireReload(t, s, &cfg)
	require.Eventually(t, reported(7), patience, time.Millisecond)
	assert.Positive(t, s.live(time.Now()).Discovery.Age, "it has had a list of upstreams since its start")
}

// The bodies of jobs that arrived before a reload still count after it: all share one budget.
func TestBodiesCountAfterAReload(t *testing.T) {
	cfg, _ := fileConfig(t, "127.0.0.1:1")
	s, _ := logged(t, &cfg)
	require.NoError(t, s.budget.Reserve(1<<20))
	cfg.Job.Budget = 8 << 20
	requireReload(t, s, &cfg)
	assert.Equal(t, metrics.Bound{Name: "body_bytes", Used: 1 << 20, Limit: 8 << 20}, s.live(time.Now()).Bounds[0])
	assert.Contains(t, s.live(time.Now()).Bounds, metrics.Bound{Name: "queue_bytes", Limit: 2 << 20}, "a quarter")
	assert.ErrorIs(t, s.budget.Reserve(7<<20+1), intake.ErrNoRoom)
}

// A key needs a restart if its value differs from the running one, not from the previous file's.
func TestChangesThatNeedARestart(t *testing.T) {
	cfg, _ := fileConfig(t, "127.0.0.1:1")
	s, logs := logged(t, &cfg)
	changed := cfg
	changed.Admin, changed.Queue.Jobs = "127.0.0.1:2", changed.Queue.Jobs+1
	all := changed
	all.Listen, all.Submitters.Connections = "127.0.0.1:3", 7
	all.Mesh.Listen, all.Job.MaxBody, all.Tracing.Share = "127.0.0.1:4", all.Job.MaxBody+1, 0.5
	changedKeys := func(c config.Config) []string {
		logs.TakeAll()
		s.from.read = func() (config.Config, []*cli.Error, error) { return c, nil, nil }
		waiting, err := s.reread()
		require.NoError(t, err)
		assert.Equal(t, len(waiting), logs.FilterMessage("a change needs a restart").Len())
		return waiting
	}
	assert.Empty(t, changedKeys(cfg))
	assert.Equal(t, []string{"admin"}, changedKeys(changed))
	assert.Equal(t, []string{"admin"}, changedKeys(changed), "it waits still")
	assert.Empty(t, changedKeys(cfg), "the change was taken back")
	assert.Equal(t, []string{"listen", "admin", "submitters", "mesh", "tracing"}, changedKeys(all), "each key once")
}

// A change of each key is in force after the reload, and not before.
func TestAReloadIsInForceAtOnce(t *testing.T) {
	const upstream = "127.0.0.1:1"
	var admin http.Handler
	ranked := func(s *sidecar) pool.Ranked {
		all, err := s.balancer.Explain(pool.Request{Project: 7})
		require.NoError(t, err)
		return all[0]
	}
	for key, c := range map[string]struct {
		change func(*config.Config)
		value  func(*sidecar) any // what the change affects
		want   any
	}{
		"queue.wait": {
			func(c *config.Config) { c.Queue.Wait = 77 * time.Second },
			func(s *sidecar) any { return s.balancer.Begin(dispatch.Request{}).QueueTimeout }, 77 * time.Second,
		},
		"retry.first_byte": {
			func(c *config.Config) { c.Retry.FirstByte = 77 * time.Second },
			func(s *sidecar) any { return s.balancer.Begin(dispatch.Request{}).FirstByte }, 77 * time.Second,
		},
		"selection.policy": {
			func(c *config.Config) { c.Selection.Policy = "random" },
			func(s *sidecar) any { return ranked(s).Cost == nil }, true,
		},
		"selection.shadow": {
			func(c *config.Config) { c.Selection.Shadow = "dynamic" },
			func(s *sidecar) any { return ranked(s).Shadow }, true,
		},
		"hosts": {
			func(c *config.Config) { c.Hosts = []string{"operator.example"} },
			func(*sidecar) any {
				w := httptest.NewRecorder()
				admin.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://operator.example/healthz", nil))
				return w.Code
			}, http.StatusOK,
		},
		"breaker.failures": {
			func(c *config.Config) { c.Breaker.Failures = 1 },
			func(s *sidecar) any {
				l, err := s.balancer.Claim(t.Context(), time.Now(), s.balancer.Begin(dispatch.Request{Arrived: time.Now()}))
				require.NoError(t, err)
				l.Done(time.Now(), pool.NoAnswer)
				return s.balancer.States()[0].Breaker.Trips
			}, 1,
		},
		"reports.interval": { // how old a report may be depends on it
			func(c *config.Config) { c.Reports.Interval = time.Hour },
			func(s *sidecar) any {
				s.balancer.Report(upstream, pool.Report{At: time.Now().Add(-10 * time.Minute), Running: [2]float64{5, 0}, Completed: -1})
				return s.balancer.States()[0].Jobs
			}, 5.0,
		},
		"overload.policy": {
			func(c *config.Config) { c.Overload.Policy = "none" },
			func(s *sidecar) any {
				s.balancer.Report(upstream, pool.Report{At: time.Now(), Stalled: [2]float64{500, 0}, Completed: -1})
				return s.balancer.States()[0].Eligible
			}, true,
		},
	} {
		t.Run(key, func(t *testing.T) {
			cfg := before(upstream)
			cfg.Reports.Interval, cfg.Overload.Policy = time.Minute, "threshold"
			s, _ := logged(t, &cfg)
			admin = s.admin()
			s.balancer.Set([]pool.Upstream{{Address: upstream}})
			require.NotEqual(t, c.want, c.value(s))
			c.change(&cfg)
			assert.Empty(t, requireReload(t, s, &cfg))
			assert.Equal(t, c.want, c.value(s))
		})
	}
}

// An upstream whose health checks fail gets no jobs. When they succeed, it gets jobs again without
// a probe.
func TestHealthChecksWithoutJobs(t *testing.T) {
	var sick atomic.Bool
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if sick.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer plain.Close()
	cfg := before(plain.Listener.Addr().String())
	cfg.Reports.HealthCheckPath, cfg.Reports.Interval = "/healthz", 5*time.Millisecond
	s, _ := running(t, &cfg)
	is := func(why string) func() bool {
		return func() bool {
			states := s.balancer.States()
			return len(states) == 1 && states[0].Why == why
		}
	}
	require.Eventually(t, is(""), patience, time.Millisecond)
	sick.Store(true)
	require.Eventually(t, is("breaker opened: health check failed: status 503 Service Unavailable"), patience, time.Millisecond)
	sick.Store(false)
	require.Eventually(t, is(""), patience, time.Millisecond)
}

// A watched configuration file is read again after changes, and on request. An invalid one
// changes nothing. admin_write allows reloads and drains.
func TestReloadsOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pilotfish.yaml")
	write := func(more string) {
		text := "discovery: {static: [127.0.0.1:1]}\nlisten: 127.0.0.1:0\nadmin: 127.0.0.1:0\nwatch: 1s\n" + more
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write("")
	first, err := os.ReadFile(path)
	require.NoError(t, err)
	read := func() (config.Config, []*cli.Error, error) { return config.Load(path) }
	cfg, _, err := read()
	require.NoError(t, err)
	s, p := runningFrom(t, &cfg, source{read: read, path: path, first: first})
	log := func() logging.Settings { return s.current.Load().cfg.Log }
	reload := func() (code int, out string) {
		code, stdout, stderr := runOn("reload", "--admin", p.Admin.Addr().String())
		return code, stdout + stderr
	}
	code, out := reload()
	assert.Equal(t, 1, code)
	assert.Contains(t, out, "admin_write is false")

	write("log: {jobs: none}\nadmin_write: true\n")
	require.Eventually(t, func() bool { return log().Jobs == "none" }, patience, 10*time.Millisecond)
	code, _, problems := runOn("drain", "127.0.0.1:1", "--admin", p.Admin.Addr().String())
	assert.Zero(t, code, problems)
	assert.Equal(t, "drained by hand", s.balancer.States()[0].Why)

	require.NoError(t, os.Remove(path))
	require.Eventually(t, func() bool {
		return strings.Contains(handle(s.metrics.Handler(), "GET", "/metrics", "").Body.String(), "\npilotfish_config_last_reload_success 0\n")
	}, patience, 10*time.Millisecond, "the next start would fail")
	assert.Equal(t, "none", log().Jobs)
	refused := "^configuration refused since [-\\d]{10} \\d\\d:\\d\\d [^ ,]+, the previous one stays in force: "
	require.Len(t, s.now().Warnings, 1)
	assert.Regexp(t, refused+path+" cannot be read: no such file or directory$", s.now().Warnings[0])
	event := s.events()[0]
	assert.Equal(t, "configuration refused: the previous one stays in force", event.Text)
	assert.Contains(t, s.now().Warnings[0], event.Cause, "the log has the same cause")
	assert.Contains(t, event.Cause, "no such file")

	write("log: {jobs: failed}\nadmin_write: true\nmesh: {listen: 127.0.0.1:0}\n")
	code, out = reload()
	assert.Zero(t, code, out)
	assert.Contains(t, out, "the change of mesh needs a restart")
	assert.Empty(t, s.now().Warnings)
	assert.Equal(t, "failed", log().Jobs)
	write("log: {jobs: some}\n")
	code, out = reload()
	assert.Equal(t, 1, code)
	assert.Contains(t, out, `the previous one stays in force: `+path+`:`)
	assert.Contains(t, out, `log.jobs: "some" is not one of`)
	assert.Regexp(t, refused+path+`:5:13: log.jobs: "some" is not one of`, s.now().Warnings[0])
	assert.Equal(t, "failed", log().Jobs)
}

// A refused configuration states since when it is refused for this reason.
func TestRefusedSince(t *testing.T) {
	s, start := &sidecar{}, time.Date(2026, 1, 1, 23, 58, 0, 0, time.UTC)
	for _, c := range []struct{ why, since string }{{"a", "2026-01-01 23:58 UTC"}, {"a", "2026-01-01 23:58 UTC"}, {"b", "2026-01-02 00:00 UTC"}, {"a", "2026-01-02 00:01 UTC"}} {
		assert.ErrorContains(t, s.refuse(start, errors.New(c.why)), "refused since "+c.since+", ")
		start = start.Add(time.Minute)
	}
}

// What overload detectors have seen is kept for another selection policy. A configuration with an unknown policy changes
// nothing. Without overload detection, a job that waits is served.
func TestReloadsWhileAJobWaits(t *testing.T) {
	cfg := before("127.0.0.1:1")
	cfg.Overload.Policy = "threshold"
	cfg.Reports.Interval = time.Hour // the report must stay fresh for three of them, even on a busy machine
	s, _ := logged(t, &cfg)
	s.balancer.Set([]pool.Upstream{{Address: "127.0.0.1:1"}})
	s.balancer.Report("127.0.0.1:1", pool.Report{At: time.Now(), Stalled: [2]float64{500, 0}, Completed: -1})
	claimed := make(chan error, 1)
	go func() {
		_, err := s.balancer.Claim(t.Context(), time.Now(), s.balancer.Begin(dispatch.Request{Arrived: time.Now(), Queue: patience}))
		claimed <- err
	}()
	require.Eventually(t, func() bool { _, waiting := s.balancer.Counts(); return waiting == 1 }, patience, time.Millisecond)

	cfg.Selection.Policy = "random"
	requireReload(t, s, &cfg)
	require.False(t, s.balancer.States()[0].Eligible)
	cfg.Overload.Policy = "none"
	for _, unknown := range []func(*config.Config){
		func(c *config.Config) { c.Selection.Policy = "magic" }, func(c *config.Config) { c.Selection.Shadow = "magic" },
	} {
		bad := cfg
		unknown(&bad)
		reloadFails(t, s, &bad, "magic")
		require.False(t, s.balancer.States()[0].Eligible)
	}
	requireReload(t, s, &cfg)
	assert.NoError(t, <-claimed)
}

// requireReload reloads a configuration, and returns the keys that need a restart.
func requireReload(t *testing.T, s *sidecar, cfg *config.Config) (waiting []string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting, err := s.reload(cfg)
	require.NoError(t, err)
	return waiting
}

func reloadFails(t *testing.T, s *sidecar, cfg *config.Config, fault string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.reload(cfg)
	assert.ErrorContains(t, err, fault)
}
