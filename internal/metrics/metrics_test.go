package metrics

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/pkg/selection"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newMetrics() *Metrics { return New(Default(), "1.2.3", "abc") }

// series returns every series as name{label="value",...} with its value. A histogram or summary
// is represented by its _count and its _sum.
func series(t *testing.T, g prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := g.Gather()
	require.NoError(t, err)
	samples, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{}, families...)
	require.NoError(t, err)
	all := map[string]float64{}
	for _, s := range samples {
		if _, isQuantile := s.Metric[model.QuantileLabel]; !isQuantile && !strings.HasSuffix(string(s.Metric[model.MetricNameLabel]), "_bucket") {
			all[strings.ReplaceAll(s.Metric.String(), ", ", ",")] = float64(s.Value)
		}
	}
	return all
}

// changes runs events, and returns the pilotfish series that they changed, with the
// differences.
func changes(t *testing.T, m *Metrics, events func()) map[string]float64 {
	t.Helper()
	before := series(t, m.registry)
	events()
	changed := map[string]float64{}
	for name, value := range series(t, m.registry) {
		if old, ok := before[name]; strings.HasPrefix(name, "pilotfish_") && (!ok || value != old) {
			changed[name] = value - old
		}
	}
	return changed
}

func TestSeriesAtStart(t *testing.T) {
	all := series(t, newMetrics().registry)
	for name, want := range map[string]float64{
		fmt.Sprintf("pilotfish_build_info{commit=\"abc\",goversion=%q,version=\"1.2.3\"}", runtime.Version()): 1,
		"pilotfish_config_last_reload_success":                     1,
		`pilotfish_jobs_total{outcome="answered",priority="high"}`: 0,
		`pilotfish_queue_jobs{priority="low"}`:                     0,
		`pilotfish_picks_total{cache="assumed"}`:                   0,
	} {
		got, ok := all[name]
		assert.True(t, ok, "no %s", name)
		assert.Equal(t, want, got, name)
	}
	assert.Positive(t, all["go_goroutines"])
	assert.Positive(t, all["process_open_fds"])
}

func TestNamesAndHelpPassThePrometheusLinter(t *testing.T) {
	m := newMetrics()
	m.Joined([]string{"u:1"})
	m.SetSource(everything)
	families, err := m.registry.Gather()
	require.NoError(t, err)
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	require.NoError(t, err)
	assert.Empty(t, problems)
}

func TestScrapesAreBounded(t *testing.T) {
	m := newMetrics()
	entered, release := make(chan struct{}), make(chan struct{})
	m.SetSource(func(time.Time) Live {
		entered <- struct{}{}
		<-release
		return Live{}
	})
	handler := m.Handler()
	scrape := func() int {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		assert.Equal(t, w.Code == http.StatusOK, strings.Contains(w.Body.String(), "\npilotfish_retries_refused_total 0\n"))
		return w.Code
	}
	codes := make(chan int)
	for range maxScrapes {
		go func() { codes <- scrape() }()
		<-entered
	}
	assert.Equal(t, http.StatusServiceUnavailable, scrape())
	close(release)
	for range maxScrapes {
		assert.Equal(t, http.StatusOK, <-codes)
	}
}

func TestWithdrawn(t *testing.T) {
	m := newMetrics()
	assert.Equal(t, map[string]float64{
		`pilotfish_withdrawals_total{outcome="accepted"}`: 1, `pilotfish_withdrawals_total{outcome="refused"}`: 2,
	}, changes(t, m, func() {
		for _, accepted := range []bool{true, false, false} {
			m.Withdrawn(accepted)
		}
	}))
}

func TestProbed(t *testing.T) {
	m := newMetrics()
	assert.Equal(t, map[string]float64{
		`pilotfish_probes_total{outcome="answered"}`: 2, `pilotfish_probes_total{outcome="failed"}`: 1,
	}, changes(t, m, func() {
		for _, answered := range []bool{true, false, true} {
			m.Probed(answered)
		}
	}))
}

func TestReloaded(t *testing.T) {
	m := newMetrics()
	const at = "pilotfish_config_last_reload_success_timestamp_seconds"
	start := series(t, m.registry)[at]
	assert.InDelta(t, float64(time.Now().Unix()), start, 3600, "the start counts")
	assert.Equal(t, map[string]float64{
		"pilotfish_config_last_reload_success": -1,
	}, changes(t, m, func() { m.Reloaded(false) }))
	got := changes(t, m, func() { m.Reloaded(true) })
	assert.Positive(t, got[at])
	delete(got, at)
	assert.Equal(t, map[string]float64{"pilotfish_config_last_reload_success": 1}, got)
}

// The events of a job allocate nothing.
func TestAJobsEventsDoNotAllocate(t *testing.T) {
	m, r := newMetrics(), &record.Job{
		Completeness: intake.Complete, TTFB: time.Second, Total: 3 * time.Second,
		Attempts: []record.Attempt{hinted("u:1")},
	}
	m.Joined([]string{"u:1"})
	event := func() {
		m.QueueEntered(selection.Low)
		m.QueueLeft(selection.Low, time.Millisecond)
		m.Ended(r)
	}
	assert.Zero(t, testing.AllocsPerRun(1000, event))
}
