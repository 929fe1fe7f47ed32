package metrics

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/pkg/selection"
)

func TestReportFailuresLiveAsLongAsTheirUpstream(t *testing.T) {
	m := newMetrics()
	const a, b = `pilotfish_report_failures_total{upstream="a:1"}`, `pilotfish_report_failures_total{upstream="b:1"}`
	failures := func() map[string]float64 {
		found := map[string]float64{}
		all := series(t, m.registry)
		for _, name := range []string{a, b} {
			if v, ok := all[name]; ok {
				found[name] = v
			}
		}
		return found
	}
	m.ReportFailed("a:1")
	assert.Empty(t, failures())
	m.Joined([]string{"a:1", "b:1"})
	m.ReportFailed("a:1")
	m.ReportFailed("a:1")
	assert.Equal(t, map[string]float64{a: 2, b: 0}, failures())
	m.Left([]string{"a:1"})
	m.ReportFailed("a:1") // of a poll that was in flight
	assert.Equal(t, map[string]float64{b: 0}, failures())
	m.Joined([]string{"a:1"})
	assert.Equal(t, map[string]float64{a: 0, b: 0}, failures())
}

// Only upstreams that publish events have their series.
func TestCacheEvents(t *testing.T) {
	m := newMetrics()
	events := func() map[string]float64 {
		all := series(t, m.registry)
		maps.DeleteFunc(all, func(name string, _ float64) bool { return !strings.HasPrefix(name, "pilotfish_cache_events_total") })
		return all
	}
	m.Joined([]string{"a:1", "b:1"})
	assert.Empty(t, events())
	m.CacheEvent("a:1", true)
	m.CacheEvent("a:1", true)
	m.CacheEvent("a:1", false)
	const of = `pilotfish_cache_events_total{result="%s",upstream="a:1"}`
	assert.Equal(t, map[string]float64{fmt.Sprintf(of, "used"): 2, fmt.Sprintf(of, "ignored"): 1}, events())
	m.Left([]string{"a:1"})
	m.CacheEvent("a:1", true) // of a connection that is closing
	assert.Empty(t, events())
}

// The number of series is bounded by the number of current upstreams, whatever submitters send
// and however often upstreams join and leave.
func TestSeriesAreBounded(t *testing.T) {
	m := newMetrics()
	var upstreams []quality.Upstream
	m.SetSource(func(time.Time) Live { return Live{View: quality.View{Upstreams: upstreams}} })
	count := func() (n int) {
		families, err := m.registry.Gather()
		assert.NoError(t, err)
		for _, f := range families {
			n += len(f.Metric)
		}
		return n
	}
	m.Joined([]string{"a:1"})
	upstreams = []quality.Upstream{rowOf("a:1")}
	page := httptest.NewRecorder()
	m.Handler().ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	assert.Equal(t, 37, strings.Count(page.Body.String(), `upstream="a:1"`), "series of an upstream, as docs/operate.md says")
	m.Left([]string{"a:1"})
	upstreams = nil
	before := count()
	for i := range 1000 {
		address := fmt.Sprintf("10.0.%d.%d:80", i/250, i%250)
		m.Joined([]string{address})
		upstreams = []quality.Upstream{rowOf(address)}
		m.ReportFailed(address)
		m.Left([]string{address})
	}
	upstreams = nil
	for i := range 100_000 {
		text := strconv.Itoa(i)
		m.Ended(&record.Job{
			ID: text, Method: text, Path: text, Peer: text, Unread: text, Err: text,
			Facts: intake.Facts{Project: text, Session: text, Priority: selection.Priority(i % 2)},
			Read:  intake.Reading(i % intake.Readings), Outcome: intake.Outcome(i % intake.Outcomes),
			Completeness: intake.Completeness(i % intake.Completenesses), Shedding: intake.Shedding(i % intake.Sheddings),
			Attempts: []record.Attempt{{
				Upstream: fmt.Sprintf("10.0.0.%d:80", i%250), Outcome: pool.Outcome(i % pool.Outcomes), Cache: selection.Cache(i % 3),
				Hint: &pool.Hint{Known: true, Cached: i%2 == 0}, Err: text,
			}},
		})
	}
	assert.Equal(t, before, count())
	assert.Empty(t, m.byUpstream)
}

// The end of a job does not wait while the series of thousands of upstreams are created or
// deleted.
func TestJobsDoNotWaitForChangesOfTheSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, busy := newMetrics(), make(chan struct{})
		m.Joined([]string{"u:1", "u:2"})
		join, leave := m.join, m.leave
		m.join = func(a string) *upstream { <-busy; return join(a) }
		m.leave = func(a string) { <-busy; leave(a) }
		go m.Left([]string{"u:2"})
		go m.Joined([]string{"u:3"})
		synctest.Wait()
		assert.Len(t, changes(t, m, func() { attempted(m, hinted("u:1")) }), 9)
		close(busy)
		synctest.Wait()
		all := series(t, m.registry)
		assert.NotContains(t, all, `pilotfish_upstream_attempts_total{outcome="answered",upstream="u:2"}`)
		assert.Contains(t, all, `pilotfish_upstream_attempts_total{outcome="answered",upstream="u:3"}`)
	})
}

// BenchmarkAThousandLeave measures the removal of the series of 1,000 of 10,000 upstreams.
func BenchmarkAThousandLeave(b *testing.B) {
	m, all := newMetrics(), make([]string, 10_000)
	for i := range all {
		all[i] = fmt.Sprintf("10.0.%d.%d:80", i/250, i%250)
	}
	m.Joined(all)
	for b.Loop() {
		m.Left(all[:1000])
		m.Joined(all[:1000])
	}
}

func TestAttempts(t *testing.T) {
	m := newMetrics()
	m.Joined([]string{"u:1"})
	want := map[string]float64{`pilotfish_picks_total{cache="none"}`: 45 + 9}
	got := changes(t, m, func() {
		for o := range pool.Outcome(pool.Outcomes) {
			attempted(m, record.Attempt{Upstream: "gone:1", Outcome: o, FirstByte: -1}) // counts only as a pick
			for range int(o) + 1 {
				attempted(m, record.Attempt{Upstream: "u:1", Outcome: o, FirstByte: -1})
			}
			want[fmt.Sprintf("pilotfish_upstream_attempts_total{outcome=%q,upstream=\"u:1\"}", o)] = float64(o) + 1
		}
	})
	assert.Equal(t, want, got)
}

// attempted counts only an attempt.
func attempted(m *Metrics, a record.Attempt) {
	m.attempts.attempted(&a)
	m.upstreams.attempted(&a)
}

// hinted returns an attempt with all fields of a load hint.
func hinted(upstream string) record.Attempt {
	return record.Attempt{
		Upstream: upstream, Outcome: pool.Answered, Cache: selection.AssumedCached, FirstByte: 3 * time.Second,
		Hint: &pool.Hint{Known: true, Waited: 2 * time.Second, Fetched: time.Second},
	}
}

func TestAttemptsAtAnUpstream(t *testing.T) {
	m := newMetrics()
	m.Joined([]string{"u:1", "u:2"})
	assert.Equal(t, map[string]float64{
		`pilotfish_picks_total{cache="assumed"}`:                               1,
		`pilotfish_cache_finds_total{believed="assumed",found="miss"}`:         1,
		`pilotfish_upstream_attempts_total{outcome="answered",upstream="u:1"}`: 1,
		`pilotfish_upstream_first_byte_seconds_count{upstream="u:1"}`:          1,
		`pilotfish_upstream_first_byte_seconds_sum{upstream="u:1"}`:            3,
		`pilotfish_upstream_wait_seconds_count{upstream="u:1"}`:                1,
		`pilotfish_upstream_wait_seconds_sum{upstream="u:1"}`:                  2,
		`pilotfish_upstream_fetch_seconds_count{upstream="u:1"}`:               1,
		`pilotfish_upstream_fetch_seconds_sum{upstream="u:1"}`:                 1,
	}, changes(t, m, func() { attempted(m, hinted("u:1")) }))

	attempt := hinted("u:2")
	attempt.Hint.Cached, attempt.Hint.Waited, attempt.Hint.Fetched = true, -1, -1
	assert.Equal(t, map[string]float64{
		`pilotfish_picks_total{cache="assumed"}`:                               1,
		`pilotfish_cache_finds_total{believed="assumed",found="hit"}`:          1,
		`pilotfish_upstream_attempts_total{outcome="answered",upstream="u:2"}`: 1,
		`pilotfish_upstream_first_byte_seconds_count{upstream="u:2"}`:          1,
		`pilotfish_upstream_first_byte_seconds_sum{upstream="u:2"}`:            3,
	}, changes(t, m, func() { attempted(m, attempt) }), "missing fields do not count")

	m.Left([]string{"u:2"})
	for name := range series(t, m.registry) {
		assert.NotContains(t, name, "u:2")
	}
}

func TestShadow(t *testing.T) {
	m := newMetrics()
	shadowed := func(to string, cost, there float64) *record.Attempt {
		return &record.Attempt{Upstream: "u:1", Why: pool.Why{Shadow: to, Cost: selection.Cost{Total: cost}, ShadowCost: there}}
	}
	data := func(a record.Attempt) *record.Job {
		return &record.Job{Facts: intake.Facts{Key: 1}, Completeness: intake.Complete, Attempts: []record.Attempt{a}}
	}
	found := changes(t, m, func() {
		m.Ended(data(record.Attempt{Cache: selection.Cached, Why: pool.Why{Shadow: "u:2", ShadowCache: selection.NotCached}}))
		m.Ended(data(record.Attempt{Why: pool.Why{Shadow: "u:2", ShadowCache: selection.AssumedCached}}))
		m.Ended(data(record.Attempt{Cache: selection.AssumedCached}))
		m.Ended(&record.Job{Attempts: []record.Attempt{{Cache: selection.Cached}}}) // a job that needs no data
	})
	maps.DeleteFunc(found, func(name string, _ float64) bool { return !strings.HasPrefix(name, "pilotfish_data_") })
	assert.Equal(t, map[string]float64{
		`pilotfish_data_finds_total{found="hit",of="policy"}`:  2,
		`pilotfish_data_finds_total{found="miss",of="policy"}`: 1,
		`pilotfish_data_finds_total{found="hit",of="shadow"}`:  1,
		`pilotfish_data_finds_total{found="miss",of="shadow"}`: 1,
	}, found)
	assert.Equal(t, map[string]float64{
		`pilotfish_shadow_choices_total{choice="same"}`:    1,
		`pilotfish_shadow_choices_total{choice="other"}`:   2,
		`pilotfish_shadow_cost_seconds_total{of="policy"}`: 3,
		`pilotfish_shadow_cost_seconds_total{of="shadow"}`: 12,
		`pilotfish_picks_total{cache="none"}`:              4,
	}, changes(t, m, func() {
		m.attempts.attempted(shadowed("u:1", 2, 2))
		m.attempts.attempted(shadowed("u:2", 1, 4))
		m.attempts.attempted(shadowed("u:2", 0, 6))
		m.attempts.attempted(shadowed("", 8, 0))
	}))
}
