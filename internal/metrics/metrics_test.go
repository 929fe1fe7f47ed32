package metrics

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newMetrics() *Metrics { return New("1.2.3") }

// series gathers every series as name{label="value",...} with its value; a
// histogram or summary is its _count and its _sum.
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
			case dto.MetricType_SUMMARY:
				all[f.GetName()+"_count"+labels] = float64(m.GetSummary().GetSampleCount())
				all[f.GetName()+"_sum"+labels] = m.GetSummary().GetSampleSum()
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
	all := series(t, newMetrics().registry)
	for name, want := range map[string]float64{
		fmt.Sprintf("pilotfish_build_info{goversion=%q,version=\"1.2.3\"}", runtime.Version()): 1,
		"pilotfish_config_last_reload_success":                                                 1,
		"pilotfish_panic_mode":                                                                 0,
		`pilotfish_jobs_total{outcome="answered",priority="high",read="full"}`:                 0,
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

func TestNamesAndHelpPassThePrometheusLinter(t *testing.T) {
	m := newMetrics()
	m.Joined([]string{"u:1"})
	m.SetSource(func(time.Time) Live {
		return growing([]pool.State{{Upstream: at("u:1")}})
	})
	families, err := m.registry.Gather()
	require.NoError(t, err)
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	require.NoError(t, err)
	assert.Empty(t, problems)
}

func TestHandlerServesWhatWasCounted(t *testing.T) {
	m := newMetrics()
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

func TestReloaded(t *testing.T) {
	m := newMetrics()
	const at = "pilotfish_config_last_reload_success_timestamp_seconds"
	start := series(t, m.registry)[at]
	assert.InDelta(t, float64(time.Now().Unix()), start, 3600, "the start counts")
	assert.Equal(t, map[string]float64{
		`pilotfish_config_reloads_total{result="refused"}`: 1,
		"pilotfish_config_last_reload_success":             -1,
	}, changes(t, m, func() { m.Reloaded(false) }))
	got := changes(t, m, func() { m.Reloaded(true) })
	assert.Positive(t, got[at])
	delete(got, at)
	assert.Equal(t, map[string]float64{
		`pilotfish_config_reloads_total{result="applied"}`: 1,
		"pilotfish_config_last_reload_success":             1,
	}, got)
}

func TestPrewarmsAndBytes(t *testing.T) {
	m := newMetrics()
	assert.Equal(t, map[string]float64{
		`pilotfish_prewarms_total{result="fetched"}`: 1,
		`pilotfish_prewarms_total{result="failed"}`:  2,
		"pilotfish_request_body_bytes_total":         10,
		"pilotfish_response_body_bytes_total":        300,
	}, changes(t, m, func() {
		m.Prewarmed(true)
		m.Prewarmed(false)
		m.Prewarmed(false)
		m.BytesPassed(10, 100)
		m.BytesPassed(-1, 200)
	}))
}

// Series could only grow with projects, paths or methods if an event could
// carry such a thing. Addresses are the only text that any of them takes.
func TestNoEventTakesTextButAddresses(t *testing.T) {
	addresses := map[string]bool{"Joined": true, "Left": true, "ReportFailed": true}
	metrics := reflect.TypeFor[*Metrics]()
	assert.Greater(t, metrics.NumMethod(), 10)
	for i := range metrics.NumMethod() {
		method := metrics.Method(i)
		for arg := range method.Type.Ins() {
			text := arg.Kind() == reflect.String || arg.Kind() == reflect.Slice || arg.Kind() == reflect.Map
			assert.False(t, text && !addresses[method.Name], "%s takes %v", method.Name, arg)
		}
	}
}

// What a job may cost: none of it allocates.
func TestAJobsEventsDoNotAllocate(t *testing.T) {
	m, attempt := newMetrics(), hinted("u:1")
	m.Joined([]string{"u:1"})
	event := func() {
		m.Picked(selection.Cached, time.Microsecond, false)
		m.QueueEntered(selection.Low)
		m.QueueLeft(selection.Low, time.Millisecond)
		m.AttemptDone(attempt)
		m.JobStretched(selection.Low, 1.5)
		m.JobDone(selection.Low, intake.Full, intake.Answered, intake.Complete, time.Second, 2*time.Second)
	}
	event() // the native histograms make their first buckets
	assert.Zero(t, testing.AllocsPerRun(1000, event))
}

func BenchmarkAJobsEvents(b *testing.B) {
	m, attempt := newMetrics(), hinted("u:1")
	m.Joined([]string{"u:1"})
	b.ReportAllocs()
	for b.Loop() {
		m.Picked(selection.Cached, time.Microsecond, false)
		m.AttemptDone(attempt)
		m.JobStretched(selection.Low, 1.5)
		m.JobDone(selection.Low, intake.Full, intake.Answered, intake.Complete, time.Second, 2*time.Second)
	}
}
