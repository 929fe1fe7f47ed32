package ruleserver

import (
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A prefetch loads the project's data, so the next job does not fetch it, and is not counted as
// a job.
func TestPrefetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, func(c *Config) { c.Settings.Cost = Cost{fetch: time.Second, output: time.Minute} })
		begin := time.Now()
		w := do(s, t.Context(), "POST", "/v1/prefetch", `{"project_id": 12345}`)
		require.Equal(t, http.StatusNoContent, w.Code)
		assert.Empty(t, w.Body.String())
		assert.Equal(t, time.Second, time.Since(begin), "it only fetches")
		assert.Contains(t, w.Header().Get(hintHeader), "fetch=1")
		assert.Contains(t, do(s, t.Context(), "GET", listingPath, "").Body.String(), `"id":"12345"`)

		job := do(s, t.Context(), "POST", "/v1/jobs", `{"project_id": 12345}`)
		assert.Contains(t, job.Header().Get(hintHeader), "cached=1")
		assert.Equal(t, http.StatusNotFound, do(s, t.Context(), "POST", "/v1/prefetch", `{"project_id": 99}`).Code)
		s.Drain()
		assert.Equal(t, http.StatusServiceUnavailable, do(s, t.Context(), "POST", "/v1/prefetch", `{"project_id": 12345}`).Code)

		page := do(s, t.Context(), "GET", "/metrics", "").Body.String()
		for _, line := range []string{
			`ruleserver_prefetches_completed_total{outcome="ok"} 1`,
			`ruleserver_jobs_completed_total{outcome="ok",priority="low"} 1`,
			`ruleserver_jobs_completed_total{outcome="ok",priority="high"} 0`,
		} {
			assert.Contains(t, page, line+"\n")
		}
	})
}

// A prefetch runs before low jobs that wait for a core.
func TestAPrefetchHasHighPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, func(c *Config) {
			c.Feeds = fstest.MapFS{"1.csv": {Data: []byte("id\n1\n")}, "2.csv": {Data: []byte("id\n1\n")}}
			c.Settings.Cores, c.Settings.Cost = 1, Cost{fetch: time.Second, output: 10 * time.Second}
		})
		go do(s, t.Context(), "POST", "/v1/jobs", `{"project_id": 1}`)
		synctest.Wait()
		begin := time.Now()
		do(s, t.Context(), "POST", "/v1/prefetch", `{"project_id": 2, "priority": "low"}`)
		assert.Equal(t, 2*time.Second, time.Since(begin), "after the fetch that ran, before that job's output")
		time.Sleep(time.Minute)
	})
}

// Executed and saved joblets are counted by kind.
func TestStatisticsOfJoblets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, func(c *Config) {
			c.Settings.Cores, c.Settings.Cost = 1, Cost{fetch: 3 * time.Second, output: time.Second}
		})
		for _, body := range []string{
			`{"project_id": 12345}`,
			`{"project_id": 12345, "operators": [{"actions": [{"field": "title", "action": "remove"}]}], "cache_result": false}`,
		} {
			go do(s, t.Context(), "POST", "/v1/jobs", body)
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		do(s, t.Context(), "POST", "/v1/jobs", `{"project_id": 12345}`) // its response is cached
		require.NoError(t, testutil.GatherAndCompare(s.registry, strings.NewReader(`
# HELP ruleserver_joblets_executed_total Joblets that ran to their end.
# TYPE ruleserver_joblets_executed_total counter
ruleserver_joblets_executed_total{kind="feed_source"} 1
ruleserver_joblets_executed_total{kind="operators"} 2
ruleserver_joblets_executed_total{kind="output_feed"} 2
ruleserver_joblets_executed_total{kind="shared_operators"} 1
# HELP ruleserver_joblets_saved_total Joblets that did not run for a job: their result was cached, or they ran for another job.
# TYPE ruleserver_joblets_saved_total counter
ruleserver_joblets_saved_total{how="cached",kind="feed_source"} 1
ruleserver_joblets_saved_total{how="cached",kind="operators"} 1
ruleserver_joblets_saved_total{how="cached",kind="output_feed"} 1
ruleserver_joblets_saved_total{how="cached",kind="shared_operators"} 1
ruleserver_joblets_saved_total{how="joined",kind="feed_source"} 1
ruleserver_joblets_saved_total{how="joined",kind="operators"} 0
ruleserver_joblets_saved_total{how="joined",kind="output_feed"} 0
ruleserver_joblets_saved_total{how="joined",kind="shared_operators"} 1
# HELP ruleserver_joblet_run_seconds_total Time that joblets ran.
# TYPE ruleserver_joblet_run_seconds_total counter
ruleserver_joblet_run_seconds_total{kind="feed_source"} 3
ruleserver_joblet_run_seconds_total{kind="operators"} 0
ruleserver_joblet_run_seconds_total{kind="output_feed"} 2
ruleserver_joblet_run_seconds_total{kind="shared_operators"} 0
`), "ruleserver_joblets_executed_total", "ruleserver_joblets_saved_total", "ruleserver_joblet_run_seconds_total"))

		begin := time.Now() // its response was not kept, but the results of the joblets before it were
		do(s, t.Context(), "POST", "/v1/jobs", `{"project_id": 12345, "operators": [{"actions": [{"field": "title", "action": "remove"}]}]}`)
		assert.Equal(t, time.Second, time.Since(begin))
	})
}
