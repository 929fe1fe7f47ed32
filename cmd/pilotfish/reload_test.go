package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
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
	s.start(context.Background())
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
	assert.ErrorIs(t, s.budget.Reserve(7<<20+1), intake.ErrNoRoom)
}

func TestReloadBeforeTheStart(t *testing.T) {
	cfg, _ := fileConfig(t, "127.0.0.1:1")
	s, _ := logged(t, &cfg)
	requireReload(t, s, &cfg)
	s.start(context.Background())
	defer s.stop()
	require.Eventually(t, func() bool { return len(s.balancer.States()) == 1 }, patience, time.Millisecond)
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

// A reload changes the queue, the breakers and the permissions of the admin port.
func TestReloadOfQueueBreakerAndAdminWrite(t *testing.T) {
	first, second := fakeupstream.New(t, fakeupstream.Options{}), fakeupstream.New(t, fakeupstream.Options{})
	cfg, path := fileConfig(t, first.Address())
	require.NoError(t, os.WriteFile(path, []byte(first.Address()+"\n"+second.Address()+"\n"), 0o600))
	s, p := running(t, &cfg)
	require.Eventually(t, func() bool { return len(s.balancer.States()) == 2 }, patience, time.Millisecond)
	admin := func(method, path string) int {
		r, err := http.NewRequest(method, "http://localhost"+path, nil)
		require.NoError(t, err)
		response, err := dialing(t, p.Admin).Do(r)
		require.NoError(t, err)
		defer response.Body.Close()
		return response.StatusCode
	}
	drain := "/api/upstreams/" + first.Address() + "/drain"
	assert.Equal(t, http.StatusForbidden, admin(http.MethodPost, drain))
	assert.Equal(t, http.StatusNotFound, admin(http.MethodGet, "/debug/pprof/"))

	cfg.AdminWrite = true
	cfg.Breaker.Failures, cfg.Breaker.Open = 1, time.Millisecond
	cfg.Queue.Jobs, cfg.Job.Budget = 1, 4<<20
	s.balancer.Set([]pool.Upstream{{Address: first.Address()}}) // until the new discovery has added the other upstream again
	assert.Empty(t, requireReload(t, s, &cfg))
	require.Eventually(t, func() bool { return len(s.balancer.States()) == 2 }, patience, time.Millisecond)
	assert.Equal(t, http.StatusOK, admin(http.MethodPost, drain))
	assert.Equal(t, http.StatusOK, admin(http.MethodGet, "/debug/pprof/"))

	bounds := s.live(time.Now()).Bounds
	assert.Contains(t, bounds, metrics.Bound{Name: "queue_jobs", Limit: 1}, "the metrics have the new bounds")
	assert.Contains(t, bounds, metrics.Bound{Name: "queue_bytes", Limit: 1 << 20})

	// The queue: no upstream is eligible, so one job waits, and the next is refused.
	s.balancer.Drain(second.Address(), true)
	s.balancer.Set(nil)
	waiting, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		_, err := s.balancer.Claim(waiting, time.Now(), s.balancer.Begin(dispatch.Request{Arrived: time.Now(), Queue: patience}))
		gone <- err
	}()
	require.Eventually(t, func() bool { _, n := s.balancer.Counts(); return n == 1 }, patience, time.Millisecond)
	_, err := s.balancer.Claim(t.Context(), time.Now(), s.balancer.Begin(dispatch.Request{Arrived: time.Now(), Queue: patience}))
	require.ErrorIs(t, err, dispatch.ErrFull)
	cancel()
	require.ErrorIs(t, <-gone, context.Canceled)

	// The breaker opens at the first failure.
	s.balancer.Set([]pool.Upstream{{Address: first.Address()}, {Address: second.Address()}})
	l, err := s.balancer.Claim(t.Context(), time.Now(), s.balancer.Begin(dispatch.Request{Arrived: time.Now(), Queue: patience}))
	require.NoError(t, err)
	l.Done(time.Now(), pool.NoAnswer)
	require.True(t, slices.ContainsFunc(s.balancer.States(), func(s pool.State) bool { return s.Breaker.Trips == 1 }))
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
// changes nothing.
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

func TestReloadOfHostsAndInterval(t *testing.T) {
	cfg, _ := fileConfig(t, "127.0.0.1:1")
	s, _ := logged(t, &cfg)
	admin := s.admin()
	status := func() int {
		r := httptest.NewRequest(http.MethodGet, "/healthz", nil)
		r.Host = "operator.example"
		w := httptest.NewRecorder()
		admin.ServeHTTP(w, r)
		return w.Code
	}
	require.Equal(t, http.StatusForbidden, status())
	cfg.Hosts = []string{"operator.example"}
	requireReload(t, s, &cfg)
	assert.Equal(t, http.StatusOK, status())

	// A report's age is judged by the current interval.
	s.balancer.Set([]pool.Upstream{{Address: "127.0.0.1:1"}})
	s.balancer.Report("127.0.0.1:1", pool.Report{At: time.Now().Add(-10 * time.Second), Running: [2]float64{5, 0}, Completed: -1})
	assert.Zero(t, s.balancer.States()[0].Jobs)
	cfg.Reports.Interval = time.Hour
	requireReload(t, s, &cfg)
	assert.Equal(t, 5.0, s.balancer.States()[0].Jobs)
}

// Selection and overload detection change while jobs wait. A configuration with an unknown
// policy changes neither.
func TestReloadOfTheRules(t *testing.T) {
	cfg, _ := fileConfig(t, "127.0.0.1:1")
	cfg.Overload.Policy = "threshold"
	cfg.Reports.Interval = time.Hour // the report must stay fresh for three of them, even on a busy machine
	s, _ := logged(t, &cfg)
	s.balancer.Set([]pool.Upstream{{Address: "127.0.0.1:1"}})
	report := func() {
		s.balancer.Report("127.0.0.1:1", pool.Report{At: time.Now(), Stalled: [2]float64{500, 0}, Completed: -1})
	}
	report()
	require.False(t, s.balancer.States()[0].Eligible)
	claimed := make(chan error, 1)
	go func() {
		l, err := s.balancer.Claim(t.Context(), time.Now(), s.balancer.Begin(dispatch.Request{Arrived: time.Now(), Queue: patience}))
		if err == nil {
			l.Done(time.Now(), pool.Answered)
		}
		claimed <- err
	}()
	require.Eventually(t, func() bool { _, waiting := s.balancer.Counts(); return waiting == 1 }, patience, time.Millisecond)

	same := cfg
	same.Selection.Policy = "random"
	priced := func() bool {
		ranked, err := s.balancer.Explain(pool.Request{Project: 1})
		require.NoError(t, err)
		return ranked[0].Cost != nil
	}
	requireReload(t, s, &same)
	require.False(t, s.balancer.States()[0].Eligible, "what a detector has seen is not forgotten for another policy")
	bad := cfg
	bad.Overload.Policy, bad.Selection.Policy = "none", "magic"
	reloadFails(t, s, &bad, "magic")
	require.False(t, s.balancer.States()[0].Eligible)

	cfg.Overload.Policy = "none"
	requireReload(t, s, &cfg)
	assert.NoError(t, <-claimed, "the job that waited is served")
	report()
	assert.True(t, s.balancer.States()[0].Eligible)
	assert.True(t, priced(), "the policy expected has costs")
	cfg.Selection.Policy = "random"
	requireReload(t, s, &cfg)
	assert.False(t, priced(), "random has none")
	cfg.Selection.Shadow = "magic"
	reloadFails(t, s, &cfg, "magic")
	cfg.Selection.Shadow = "dynamic"
	requireReload(t, s, &cfg)
	ranked, err := s.balancer.Explain(pool.Request{})
	require.NoError(t, err)
	assert.True(t, ranked[0].Shadow)
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
