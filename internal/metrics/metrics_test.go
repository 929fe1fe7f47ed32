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
	"example.org/pilotfish/internal/pool"
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

// Each event changes these series, and no others.
func TestCountedEvents(t *testing.T) {
	shadowed := func(to string, cost, there float64) record.Attempt {
		return record.Attempt{Upstream: "x:1", Explanation: pool.Explanation{Shadow: to, Cost: selection.Cost{Total: cost}, ShadowCost: there}}
	}
	for name, c := range map[string]struct {
		events func(m *Metrics)
		want   map[string]float64
	}{
		"withdrawals": {func(m *Metrics) { m.Withdrawn(true); m.Withdrawn(false); m.Withdrawn(false) }, map[string]float64{
			`pilotfish_withdrawals_total{outcome="accepted"}`: 1,
			`pilotfish_withdrawals_total{outcome="refused"}`:  2,
		}},
		"probes": {func(m *Metrics) { m.Probed(true); m.Probed(false); m.Probed(true) }, map[string]float64{
			`pilotfish_probes_total{outcome="answered"}`: 2,
			`pilotfish_probes_total{outcome="failed"}`:   1,
		}},
		"the queue is entered": {func(m *Metrics) { m.QueueEntered(selection.High); m.QueueEntered(selection.Low) }, map[string]float64{
			`pilotfish_queue_jobs{priority="high"}`: 1,
			`pilotfish_queue_jobs{priority="low"}`:  1,
		}},
		"the queue is left": {func(m *Metrics) { m.QueueLeft(selection.High, 3*time.Second) }, map[string]float64{
			`pilotfish_queue_jobs{priority="high"}`:               -1,
			`pilotfish_queue_wait_seconds_count{priority="high"}`: 1,
			`pilotfish_queue_wait_seconds_sum{priority="high"}`:   3,
		}},
		"a prefetch is neither a job nor a pick": {func(m *Metrics) {
			m.Ended(&record.Job{Facts: intake.Facts{Prefetch: true}, Total: time.Second, Body: 9, Attempts: []record.Attempt{{Upstream: "x:1"}}})
		}, map[string]float64{
			`pilotfish_prefetches_total{outcome="answered"}`: 1,
		}},
		"a job finds prefetched data": {func(m *Metrics) { attempted(m, record.Attempt{Explanation: pool.Explanation{Prefetched: true}}) }, map[string]float64{
			"pilotfish_prefetches_used_total":     1,
			`pilotfish_picks_total{cache="none"}`: 1,
		}},
		"heavy jobs": {func(m *Metrics) {
			attempted(m, record.Attempt{Explanation: pool.Explanation{Heavy: true, Dedicated: true}})
			attempted(m, record.Attempt{Explanation: pool.Explanation{Heavy: true}})
		}, map[string]float64{
			`pilotfish_heavy_picks_total{upstream_kind="dedicated"}`: 1,
			`pilotfish_heavy_picks_total{upstream_kind="ordinary"}`:  1,
			`pilotfish_picks_total{cache="none"}`:                    2,
		}},
		"a shadow policy": {func(m *Metrics) {
			attempted(m, shadowed("x:1", 2, 2))
			attempted(m, shadowed("y:1", 1, 4))
			attempted(m, shadowed("y:1", 0, 6))
			attempted(m, shadowed("", 8, 0))
		}, map[string]float64{
			`pilotfish_shadow_choices_total{choice="same"}`:    1,
			`pilotfish_shadow_choices_total{choice="other"}`:   2,
			`pilotfish_shadow_cost_seconds_total{of="policy"}`: 3,
			`pilotfish_shadow_cost_seconds_total{of="shadow"}`: 12,
			`pilotfish_picks_total{cache="none"}`:              4,
		}},
		"an attempt with a load hint": {func(m *Metrics) { attempted(m, hinted("u:1")) }, map[string]float64{
			`pilotfish_picks_total{cache="assumed"}`:                               1,
			`pilotfish_cache_finds_total{believed="assumed",found="miss"}`:         1,
			`pilotfish_upstream_attempts_total{outcome="answered",upstream="u:1"}`: 1,
			`pilotfish_upstream_first_byte_seconds_count{upstream="u:1"}`:          1,
			`pilotfish_upstream_first_byte_seconds_sum{upstream="u:1"}`:            3,
			`pilotfish_upstream_wait_seconds_count{upstream="u:1"}`:                1,
			`pilotfish_upstream_wait_seconds_sum{upstream="u:1"}`:                  2,
			`pilotfish_upstream_fetch_seconds_count{upstream="u:1"}`:               1,
			`pilotfish_upstream_fetch_seconds_sum{upstream="u:1"}`:                 1,
		}},
		"missing fields of a hint do not count": {func(m *Metrics) {
			attempted(m, record.Attempt{Upstream: "u:1", Outcome: pool.Answered, FirstByte: -1, Hint: &pool.Hint{Known: true, Cached: true, Waited: -1, Fetched: -1}})
		}, map[string]float64{
			`pilotfish_picks_total{cache="none"}`:                                  1,
			`pilotfish_cache_finds_total{believed="none",found="hit"}`:             1,
			`pilotfish_upstream_attempts_total{outcome="answered",upstream="u:1"}`: 1,
		}},
	} {
		m := newMetrics()
		m.Joined([]string{"u:1"})
		assert.Equal(t, c.want, changes(t, m, func() { c.events(m) }), name)
	}
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

// Each ended job is counted by its outcome, and each shed job by its reason. The duration is observed unless the job was
// refused or pilotfish had an internal error. With the duration, the time to first byte of a response is observed, too.
func TestEndedJobs(t *testing.T) {
	type ended struct {
		outcome      intake.Outcome
		completeness intake.Completeness
		ttfb         time.Duration
		timed        bool // the duration is observed
		why          intake.Shedding
	}
	cases := []ended{
		{intake.Answered, intake.Complete, 2 * time.Second, true, 0},
		{intake.Answered, intake.Complete, 0, true, 0},
		{intake.Failed, intake.Complete, 2 * time.Second, true, 0},
		{intake.Truncated, intake.Partial, 2 * time.Second, true, 0},
		{intake.Deadline, intake.Partial, 2 * time.Second, true, 0},
		{intake.Deadline, intake.Absent, 0, true, 0},
		{intake.Gone, intake.Partial, 2 * time.Second, true, 0},
		{intake.Gone, intake.Complete, 2 * time.Second, true, 0}, // unusual, but counted as recorded
		{intake.Gone, intake.Absent, 0, true, 0},
		{intake.NoAnswer, intake.Absent, 0, true, 0},
		{intake.Rejected, intake.Absent, 0, false, 0},
		{intake.TooLarge, intake.Absent, 0, false, 0},
		{intake.Broken, intake.Absent, 0, false, 0},
		{intake.Broken, intake.Partial, 2 * time.Second, false, 0},
	}
	for why := range intake.Shedding(intake.Sheddings) {
		cases = append(cases, ended{outcome: intake.Shed, completeness: intake.Absent, why: why})
	}
	for _, c := range cases {
		for _, p := range []selection.Priority{selection.Low, selection.High} {
			m := newMetrics()
			want := map[string]float64{
				fmt.Sprintf("pilotfish_jobs_total{outcome=%q,priority=%q}", c.outcome, p): 1,
			}
			if c.outcome == intake.Shed {
				want[fmt.Sprintf("pilotfish_shed_total{priority=%q,reason=%q}", p, c.why)] = 1
			}
			if c.timed {
				want[fmt.Sprintf("pilotfish_job_duration_seconds_count{priority=%q}", p)] = 1
				want[fmt.Sprintf("pilotfish_job_duration_seconds_sum{priority=%q}", p)] = 5
			}
			if c.timed && c.completeness != intake.Absent {
				want[fmt.Sprintf("pilotfish_job_ttfb_seconds_count{priority=%q}", p)] = 1
				if c.ttfb > 0 {
					want[fmt.Sprintf("pilotfish_job_ttfb_seconds_sum{priority=%q}", p)] = 2
				}
			}
			assert.Equal(t, want, changes(t, m, func() {
				m.Ended(&record.Job{
					Facts: intake.Facts{Priority: p}, Outcome: c.outcome, Shedding: c.why, Completeness: c.completeness,
					TTFB: c.ttfb, Total: 5 * time.Second,
				})
			}),
				"%v job, %v, %v, first byte after %v", p, c.outcome, c.completeness, c.ttfb)
		}
	}
}

func TestOutcomesOfJobsAndAttemptsAgree(t *testing.T) {
	for o, attempt := range map[intake.Outcome]pool.Outcome{
		intake.Answered:  pool.Answered,
		intake.Failed:    pool.Failed,
		intake.Truncated: pool.Truncated,
		intake.NoAnswer:  pool.NoAnswer,
		intake.Gone:      pool.Gone,
	} {
		assert.Equal(t, attempt.String(), o.String(), "labels of an attempt and of a job")
	}
}

// Each value of a job that is known changes its series. A body of unknown size (-1) adds no bytes. A rejected job does not
// count in pilotfish_jobs_read_total. The series that TestEndedJobs checks are left out.
func TestKnownValuesOfAJobAreCounted(t *testing.T) {
	ended := func(r record.Job) map[string]float64 {
		m := newMetrics()
		got := changes(t, m, func() {
			r.Total = 5 * time.Second
			m.Ended(&r)
		})
		for name := range got {
			if strings.HasPrefix(name, "pilotfish_job") && !strings.HasPrefix(name, "pilotfish_job_stretch") && !strings.HasPrefix(name, "pilotfish_job_wait") && !strings.HasPrefix(name, "pilotfish_jobs_read") {
				delete(got, name)
			}
		}
		return got
	}
	hinted := record.Attempt{Upstream: "u:1", Hint: &pool.Hint{Waited: 4 * time.Second}}
	assert.Equal(t, map[string]float64{
		`pilotfish_job_wait_seconds_count{priority="low"}`: 1, `pilotfish_job_wait_seconds_sum{priority="low"}`: 4, `pilotfish_job_stretch_count{priority="low"}`: 1, `pilotfish_job_stretch_sum{priority="low"}`: 5,
		`pilotfish_jobs_read_total{read="full"}`: 1, `pilotfish_picks_total{cache="none"}`: 1, "pilotfish_replay_disabled_total": 1, "pilotfish_retries_refused_total": 1,
		"pilotfish_request_body_bytes_total": 10, "pilotfish_response_body_bytes_total": 100,
	}, ended(record.Job{
		Completeness: intake.Complete, Attempts: []record.Attempt{hinted}, Read: intake.Full, Unkept: true, RetryRefused: true, Body: 10, Bytes: 100,
	}))
	assert.Equal(t, map[string]float64{`pilotfish_jobs_read_total{read="unread"}`: 1}, ended(record.Job{Body: -1}))
	assert.Equal(t, map[string]float64{"pilotfish_request_body_bytes_total": 10}, ended(record.Job{Body: 10, Outcome: intake.Rejected}))
}
