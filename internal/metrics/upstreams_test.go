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

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/pkg/selection"
)

// What is counted of an upstream is counted while it is known. Series of rare events do not exist before the first event.
func TestCountsLiveAsLongAsTheirUpstream(t *testing.T) {
	for name, c := range map[string]struct {
		event func(m *Metrics, address string)
		rare  bool
	}{
		"pilotfish_report_failures_total{":               {(*Metrics).ReportFailed, false},
		"pilotfish_load_headers_invalid_total{":          {(*Metrics).HintInvalid, true},
		`pilotfish_cache_events_total{result="used",`:    {func(m *Metrics, address string) { m.CacheEvent(address, true) }, true},
		`pilotfish_cache_events_total{result="ignored",`: {func(m *Metrics, address string) { m.CacheEvent(address, false) }, true},
	} {
		m := newMetrics()
		counts := func() map[string]float64 {
			found, all := map[string]float64{}, series(t, m.registry)
			for _, address := range []string{"a:1", "b:1"} {
				if count, ok := all[name+`upstream="`+address+`"}`]; ok {
					found[address] = count
				}
			}
			return found
		}
		without := map[string]float64{"a:1": 0, "b:1": 0}
		if c.rare {
			clear(without)
		}
		c.event(m, "a:1")
		assert.Empty(t, counts(), name)
		m.Joined([]string{"a:1", "b:1"})
		assert.Equal(t, without, counts(), name)
		c.event(m, "a:1")
		c.event(m, "a:1")
		assert.Equal(t, 2.0, counts()["a:1"], name)
		m.Left([]string{"a:1"})
		c.event(m, "a:1") // of a poll or connection that is ending
		assert.NotContains(t, counts(), "a:1", name)
		m.Joined([]string{"a:1"})
		assert.Equal(t, without, counts(), name)
	}
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

// The end of a job does not wait while a scrape delays a new series of another upstream. The series ends with its upstream.
func TestJobsDoNotWaitForANewSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, busy := New(Settings{Upstreams: summary}, "1.2.3", "abc"), make(chan struct{})
		m.Joined([]string{"u:1", "u:2", "u:3"})
		count := m.count
		m.count = func(a string, o pool.Outcome) prometheus.Counter { <-busy; return count(a, o) }
		for _, a := range []string{"u:1", "u:2"} {
			go attempted(m, record.Attempt{Upstream: a, Outcome: pool.Refused, FirstByte: -1})
		}
		synctest.Wait()
		attempted(m, record.Attempt{Upstream: "u:3", Outcome: pool.Answered, FirstByte: -1})
		m.Left([]string{"u:2"})
		close(busy)
		synctest.Wait()
		all := series(t, m.registry)
		assert.Equal(t, 1.0, all[`pilotfish_upstream_attempts_total{outcome="answered",upstream="u:3"}`])
		assert.Equal(t, 1.0, all[`pilotfish_upstream_attempts_total{outcome="refused",upstream="u:1"}`])
		assert.NotContains(t, all, `pilotfish_upstream_attempts_total{outcome="refused",upstream="u:2"}`)
	})
}

// A summary is advised once, and not while there is one.
func TestManyUpstreams(t *testing.T) {
	for kind, want := range map[string]bool{all: true, summary: false} {
		m, addresses := New(Settings{Upstreams: kind}, "1.2.3", "abc"), make([]string, manyUpstreams+2)
		for i := range addresses {
			addresses[i] = strconv.Itoa(i)
		}
		assert.False(t, m.Joined(addresses[:manyUpstreams]), kind)
		assert.Equal(t, want, m.Joined(addresses[manyUpstreams:manyUpstreams+1]), kind)
		assert.False(t, m.Joined(addresses[manyUpstreams+1:]), kind)
	}
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

func TestDataFinds(t *testing.T) {
	m := newMetrics()
	data := func(a record.Attempt) *record.Job {
		return &record.Job{Facts: intake.Facts{Key: 1}, Completeness: intake.Complete, Attempts: []record.Attempt{a}}
	}
	found := changes(t, m, func() {
		m.Ended(data(record.Attempt{Cache: selection.Cached, Explanation: pool.Explanation{Shadow: "u:2", ShadowCache: selection.NotCached}}))
		m.Ended(data(record.Attempt{Explanation: pool.Explanation{Shadow: "u:2", ShadowCache: selection.AssumedCached}}))
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
}
