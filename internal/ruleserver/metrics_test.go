package ruleserver

import (
	"fmt"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/ruleserver/executor"
)

// TestMetrics: a scenario with known results; all metrics can be scraped.
func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, func(c *Config) {
			c.Feeds = fstest.MapFS{"1.csv": {Data: []byte("id\n1\n")}, "2.csv": {Data: []byte("id\n1\n")}, "3.csv": {Data: []byte("id\n1\n")}}
			c.Settings.Cores = 1
			c.Settings.Cost = Cost{fetch: 10 * time.Second}
		})
		var wg sync.WaitGroup
		for _, body := range []string{
			`{"project_id": 1, "priority": "low"}`,
			`{"project_id": 2, "priority": "low"}`,
			`{"project_id": 2, "priority": "low", "operators": [{"actions": [{"field": "id", "action": "remove"}]}]}`, // shares the fetch
			`{"project_id": 3, "priority": "high"}`,
		} {
			wg.Go(func() { do(s, t.Context(), "POST", "/v1/jobs", body) })
			synctest.Wait()
		}
		hasMetrics(t, s, `cores 1`, `cores_busy 1`, `jobs_running{priority="high"} 0`, `jobs_running{priority="low"} 1`,
			`stalled_joblets{priority="high"} 1`, `stalled_joblets{priority="low"} 1`)
		wg.Wait()

		do(s, t.Context(), "POST", "/v1/jobs", `{"project_id": 99}`) // rejected: counted in no metric
		for _, outcome := range []string{"cancelled", "failed", "timeout"} {
			for _, priority := range []string{"high", "low"} {
				hasMetrics(t, s, fmt.Sprintf("jobs_completed_total{outcome=%q,priority=%q} 0", outcome, priority))
			}
		}
		// Low jobs wait 0 s, and twice 20 s for the first fetch and the high job's.
		hasMetrics(t, s, `jobs_completed_total{outcome="ok",priority="high"} 1`, `jobs_completed_total{outcome="ok",priority="low"} 3`,
			`wait_seconds_sum{priority="low"} 40`, `wait_seconds_count{priority="low"} 3`, `wait_seconds_sum{priority="high"} 10`)
	})
}

func TestMetricsAreClean(t *testing.T) {
	s := newServer(t, nil)
	problems, err := testutil.GatherAndLint(s.registry)
	require.NoError(t, err)
	assert.Empty(t, problems)
}

func TestHealthOfTheServer(t *testing.T) {
	stalled := 0
	s := newServer(t, func(c *Config) {
		c.AdjustLoad = func(l *executor.Load) { l.Stalled = [2]int{1, stalled - 1} }
	})
	now := time.Now()
	for _, c := range []struct {
		stalled int
		stops   time.Time
		want    Health
		why     string
	}{
		{100, time.Time{}, Passing, "100 stalled joblets"},
		{101, time.Time{}, Warning, "overloaded: 101 stalled joblets, and the limit is 100"},
		{1, now.Add(31 * time.Second), Passing, "1 stalled joblets"},
		{101, now.Add(30 * time.Second), Critical, "stops in 30s"},
		{1, now.Add(-time.Second), Critical, "stops in 0s"},
	} {
		stalled = c.stalled
		got, why := s.Health(now, 100, c.stops)
		assert.Equal(t, c.want, got, "%+v", c)
		assert.Equal(t, c.why, why)
	}
	s.Drain()
	got, _ := s.Health(now, 100, time.Time{})
	assert.Equal(t, Critical, got)
}

func TestHint(t *testing.T) {
	load := executor.Load{Cores: 16, Busy: 12}
	load.Running[executor.High], load.Running[executor.Low] = 2, 10
	load.Stalled[executor.High], load.Stalled[executor.Low] = 1, 2
	now := time.UnixMilli(1763677245123)
	assert.Equal(t, "at=1763677245.123, running=12, stalled=3, stalled_high=1, cores=16, busy=12", hint(now, load, executor.Facts{}))
	assert.Equal(t, "at=1763677245.123, running=12, stalled=3, stalled_high=1, cores=16, busy=12, cached=1, waited=0.004",
		hint(now, load, executor.Facts{Started: true, Cached: true, Wait: 4 * time.Millisecond}))
	assert.Equal(t, "at=1763677245.123, running=12, stalled=3, stalled_high=1, cores=16, busy=12, cached=0, waited=0, fetch=1.9",
		hint(now, load, executor.Facts{Started: true, Fetch: 1900 * time.Millisecond}))
}

// TestORCA: the same figures as text, for clients that request it.
func TestORCA(t *testing.T) {
	load := executor.Load{Cores: 16, Busy: 12, Running: [2]int{2, 10}, Stalled: [2]int{1, 3}}
	job := executor.Facts{Started: true, Cached: true, Wait: 4 * time.Millisecond}
	assert.Equal(t, "TEXT cpu_utilization=0.75, application_utilization=1, named_metrics.running=12, named_metrics.stalled=4, "+
		"named_metrics.stalled_high=1, named_metrics.cores=16, named_metrics.busy=12, named_metrics.cached=1, named_metrics.waited=0.004", orca(load, job))

	s := newServer(t, nil)
	for _, body := range []string{anyJob, "{}"} {
		for format, sent := range map[string]bool{"": false, "json": false, "text": true, "TEXT": true} {
			w := do(s, t.Context(), "POST", "/v1/jobs", body, orcaFormatHeader+": "+format)
			assert.Equal(t, sent, w.Header().Get(orcaHeader) != "", "%s %s", body, format)
		}
	}
}

func TestListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Now()
		files := fstest.MapFS{
			"12345.csv": {Data: []byte("id\n1\n"), ModTime: at},
			"shop.csv":  {Data: []byte("id\n22\n"), ModTime: at},
		}
		s := newServer(t, func(c *Config) { c.Feeds = files })
		list := func(options ...string) (body string, status int, etag string) {
			w := do(s, t.Context(), "GET", "/v1/cache/projects", "", options...)
			return w.Body.String(), w.Code, w.Header().Get("ETag")
		}
		body, _, empty := list()
		assert.JSONEq(t, `{"projects":[]}`, body)

		do(s, t.Context(), "POST", "/v1/jobs", `{"project_id": "shop"}`)
		time.Sleep(1500 * time.Millisecond)
		do(s, t.Context(), "POST", "/v1/jobs", `{"project_id": 12345}`)
		time.Sleep(time.Second)
		body, _, etag := list()
		shop, err := s.feeds.version("shop")
		require.NoError(t, err)
		number, err := s.feeds.version("12345")
		require.NoError(t, err)
		assert.JSONEq(t, fmt.Sprintf(`{"projects":[{"id":"shop","version":%d,"bytes":18,"age_seconds":2.500},`+
			`{"id":"12345","version":%d,"bytes":17,"age_seconds":1.000}]}`, shop, number), body)
		assert.NotEqual(t, empty, etag)
		// An unchanged listing keeps its tag with time; a changed one gets another tag.
		time.Sleep(time.Hour)
		body, status, same := list("If-None-Match: " + etag)
		assert.Equal(t, 304, status)
		assert.Empty(t, body)
		assert.Equal(t, etag, same)
		require.NoError(t, s.Warm("12345"))
		_, status, other := list("If-None-Match: " + etag)
		assert.Equal(t, 200, status)
		assert.NotEqual(t, etag, other)

		// A restarted server has other tags, even with the same counts.
		time.Sleep(time.Second)
		again := newServer(t, func(c *Config) { c.Feeds = files })
		assert.NotEqual(t, empty, do(again, t.Context(), "GET", "/v1/cache/projects", "").Header().Get("ETag"))
	})
}

// A probe's response has the load in its header, and whether the data of the named project is cached or
// being fetched.
func TestLoadPage(t *testing.T) {
	s := newServer(t, nil)
	load := func(query string) string {
		return do(s, t.Context(), "GET", "/v1/load"+query, "").Header().Get(hintHeader)
	}
	assert.Contains(t, load(""), ", running=0, stalled=0, stalled_high=0, cores=")
	assert.NotContains(t, load(""), "cached")
	assert.Contains(t, load("?project=12345"), "cached=0")
	require.Equal(t, 200, do(s, t.Context(), "POST", "/v1/jobs", anyJob).Code)
	assert.Contains(t, load("?project=12345"), "cached=1")
	assert.Contains(t, load("?project=2"), "cached=0")
	assert.Contains(t, load("?project=../1"), "cached=0")
	text := do(s, t.Context(), "GET", "/v1/load?project=12345", "", orcaFormatHeader+": text").Header().Get(orcaHeader)
	assert.Contains(t, text, "named_metrics.busy=0")
	s.fault.Store(faultSilent)
	assert.Empty(t, load(""))
}
