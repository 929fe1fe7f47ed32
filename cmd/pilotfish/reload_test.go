package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"example.org/pilotfish/internal/config"
	"example.org/pilotfish/internal/discovery"
	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/fakeupstream"
)

// patience bounds a wait for what must come.
const patience = time.Minute

// fileConfig is a configuration whose upstream is listed in a file.
func fileConfig(t *testing.T, address string) (cfg config.Config, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "upstreams")
	require.NoError(t, os.WriteFile(path, []byte(address+"\n"), 0o600))
	cfg = config.Default()
	cfg.Discovery.File = &discovery.File{Path: path, Interval: time.Second}
	cfg.Reports.Interval = 20 * time.Millisecond
	requireUsable(t, &cfg)
	return cfg, path
}

func requireUsable(t *testing.T, cfg *config.Config) {
	t.Helper()
	var f settings.Faults
	cfg.Check(&f)
	require.NoError(t, f.Err())
}

func logged(t *testing.T, cfg *config.Config) (*sidecar, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zapcore.InfoLevel)
	s, err := newSidecar(cfg, nil, zap.New(core), zap.NewAtomicLevel())
	require.NoError(t, err)
	return s, logs
}

// A reload while discovery is out of reach keeps the upstreams, and goes on
// asking them about themselves.
func TestReportsGoOnAfterAReloadWithoutDiscovery(t *testing.T) {
	upstream := fakeupstream.New(t, fakeupstream.Options{})
	cfg, path := fileConfig(t, upstream.Address())
	s, _ := logged(t, &cfg)
	s.start(context.Background())
	defer s.stop()
	reported := func(running int) func() bool {
		upstream.SetRunning(0, running)
		return func() bool {
			states := s.balancer.States()
			return len(states) == 1 && states[0].Running == float64(running)
		}
	}
	require.Eventually(t, reported(5), patience, time.Millisecond)

	require.NoError(t, os.Remove(path))
	require.NoError(t, s.reload(&cfg))
	require.Eventually(t, reported(7), patience, time.Millisecond)
}

func TestReloadBeforeTheStart(t *testing.T) {
	cfg, _ := fileConfig(t, "127.0.0.1:1")
	s, _ := logged(t, &cfg)
	require.NoError(t, s.reload(&cfg))
	s.start(context.Background())
	defer s.stop()
	require.Eventually(t, func() bool { return len(s.balancer.States()) == 1 }, patience, time.Millisecond)
}

// What waits for a restart is told by what runs, not by what the file said last.
func TestChangesThatWaitForARestart(t *testing.T) {
	cfg, _ := fileConfig(t, "127.0.0.1:1")
	s, logs := logged(t, &cfg)
	changed := cfg
	changed.Queue.Jobs++
	told := func(c config.Config) int {
		logs.TakeAll()
		require.NoError(t, s.reload(&c))
		return logs.FilterMessage("a change waits for a restart").Len()
	}
	assert.Zero(t, told(cfg))
	assert.Equal(t, 1, told(changed))
	assert.Equal(t, 1, told(changed), "it waits still")
	assert.Zero(t, told(cfg), "the change was taken back")
}

func TestReloadOfHostsAndInterval(t *testing.T) {
	cfg, _ := fileConfig(t, "127.0.0.1:1")
	s, _ := logged(t, &cfg)
	admin, err := s.admin()
	require.NoError(t, err)
	status := func() int {
		r := httptest.NewRequest(http.MethodGet, "/healthz", nil)
		r.Host = "operator.example"
		w := httptest.NewRecorder()
		admin.ServeHTTP(w, r)
		return w.Code
	}
	require.Equal(t, http.StatusForbidden, status())
	cfg.Hosts = []string{"operator.example"}
	require.NoError(t, s.reload(&cfg))
	assert.Equal(t, http.StatusOK, status())

	// A report's age counts by the interval of now.
	s.balancer.Set([]pool.Upstream{{Address: "127.0.0.1:1"}})
	s.balancer.Report("127.0.0.1:1", pool.Report{At: time.Now().Add(-10 * time.Second), Running: [2]float64{5, 0}, Completed: -1})
	assert.Zero(t, s.balancer.States()[0].Jobs)
	cfg.Reports.Interval = time.Hour
	require.NoError(t, s.reload(&cfg))
	assert.Equal(t, 5.0, s.balancer.States()[0].Jobs)
}

// Selection and overload detection are changed while jobs wait, and a
// configuration with an unknown policy changes neither.
func TestReloadOfTheRules(t *testing.T) {
	cfg, _ := fileConfig(t, "127.0.0.1:1")
	cfg.Overload.Policy = "threshold"
	s, _ := logged(t, &cfg)
	s.balancer.Set([]pool.Upstream{{Address: "127.0.0.1:1"}})
	report := func() {
		s.balancer.Report("127.0.0.1:1", pool.Report{At: time.Now(), Stalled: [2]float64{500, 0}, Completed: -1})
	}
	report()
	require.False(t, s.balancer.States()[0].Eligible)
	claimed := make(chan error, 1)
	go func() {
		l, err := s.balancer.Claim(t.Context(), s.balancer.Begin(dispatch.Request{Queue: patience}))
		if err == nil {
			l.Done(pool.Answered)
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
	require.NoError(t, s.reload(&same))
	require.False(t, s.balancer.States()[0].Eligible, "what a detector has seen is not forgotten for another policy")
	bad := cfg
	bad.Overload.Policy, bad.Selection.Policy = "none", "magic"
	require.Error(t, s.reload(&bad))
	require.False(t, s.balancer.States()[0].Eligible)

	cfg.Overload.Policy = "none"
	require.NoError(t, s.reload(&cfg))
	assert.NoError(t, <-claimed, "the job that waited is served")
	report()
	assert.True(t, s.balancer.States()[0].Eligible)
	assert.True(t, priced(), "expected tells its costs")
	cfg.Selection.Policy = "random"
	require.NoError(t, s.reload(&cfg))
	assert.False(t, priced(), "random has none")
}
