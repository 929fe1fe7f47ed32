package metrics

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newMetrics(t *testing.T) *Metrics {
	t.Helper()
	m, err := New(nil, "1.2.3")
	require.NoError(t, err)
	return m
}

// series gathers every series as name{label="value",...} with its value; a
// histogram is its _count and its _sum.
func series(t *testing.T, g prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := g.Gather()
	require.NoError(t, err)
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			labels := labelText(m.Label)
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				all[f.GetName()+labels] = m.GetCounter().GetValue()
			case dto.MetricType_GAUGE:
				all[f.GetName()+labels] = m.GetGauge().GetValue()
			case dto.MetricType_HISTOGRAM:
				all[f.GetName()+"_count"+labels] = float64(m.GetHistogram().GetSampleCount())
				all[f.GetName()+"_sum"+labels] = m.GetHistogram().GetSampleSum()
			}
		}
	}
	return all
}

func labelText(labels []*dto.LabelPair) string {
	if len(labels) == 0 {
		return ""
	}
	var pairs []string
	for _, l := range labels {
		pairs = append(pairs, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
	}
	return "{" + strings.Join(pairs, ",") + "}"
}

// changes runs events and returns the series of pilotfish that they changed,
// and by how much.
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

func TestAtTheStart(t *testing.T) {
	all := series(t, newMetrics(t).registry)
	for name, want := range map[string]float64{
		fmt.Sprintf("pilotfish_build_info{goversion=%q,version=\"1.2.3\"}", runtime.Version()): 1,
		"pilotfish_config_last_reload_success":                                                 1,
		"pilotfish_panic_mode":                                                                 0,
		`pilotfish_jobs_total{outcome="answered",priority="high"}`:                             0,
		`pilotfish_queue_jobs{priority="low"}`:                                                 0,
		`pilotfish_picks_total{cache="assumed"}`:                                               0,
	} {
		got, ok := all[name]
		assert.True(t, ok, "no %s", name)
		assert.Equal(t, want, got, name)
	}
	assert.Positive(t, all["go_goroutines"])
	assert.Positive(t, all["process_open_fds"])
}

func TestTwoOnOneRegistryAreRefused(t *testing.T) {
	registry := prometheus.NewRegistry()
	_, err := New(registry, "1")
	require.NoError(t, err)
	_, err = New(registry, "1")
	require.ErrorContains(t, err, "metrics: ")
	assert.ErrorAs(t, err, new(prometheus.AlreadyRegisteredError))
}

func TestNamesAndHelpPassThePrometheusLinter(t *testing.T) {
	m := newMetrics(t)
	m.Joined([]string{"u:1"})
	m.SetSource(func(time.Time) Live {
		return Live{Upstreams: []pool.State{{Upstream: at("u:1")}}}
	})
	families, err := m.registry.Gather()
	require.NoError(t, err)
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	require.NoError(t, err)
	assert.Empty(t, problems)
}

func TestHandlerServesWhatWasCounted(t *testing.T) {
	m := newMetrics(t)
	m.RetryRefused()
	server := httptest.NewServer(m.Handler())
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	for range 2 {
		answer, err := http.Get(server.URL)
		require.NoError(t, err)
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		assert.Equal(t, http.StatusOK, answer.StatusCode)
		assert.Contains(t, string(text), "\npilotfish_retries_refused_total 1\n", "a scrape changed it")
	}
}

func TestScrapesAreBounded(t *testing.T) {
	m := newMetrics(t)
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
