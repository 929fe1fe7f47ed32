package ruleserver

import (
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMetrics: a scenario with known numbers; all of them can be scraped.
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
		require.NoError(t, testutil.GatherAndCompare(s.registry, strings.NewReader(`
# HELP ruleserver_cores Joblets that can run at the same time.
# TYPE ruleserver_cores gauge
ruleserver_cores 1
# HELP ruleserver_cores_busy Cores that run a joblet.
# TYPE ruleserver_cores_busy gauge
ruleserver_cores_busy 1
# HELP ruleserver_jobs_running Jobs received and not finished, less those whose next joblet is stalled.
# TYPE ruleserver_jobs_running gauge
ruleserver_jobs_running{priority="high"} 0
ruleserver_jobs_running{priority="low"} 1
# HELP ruleserver_stalled_joblets Joblets that are ready and wait for a core.
# TYPE ruleserver_stalled_joblets gauge
ruleserver_stalled_joblets{priority="high"} 1
ruleserver_stalled_joblets{priority="low"} 1
`), "ruleserver_cores", "ruleserver_cores_busy", "ruleserver_jobs_running", "ruleserver_stalled_joblets"))
		wg.Wait()

		do(s, t.Context(), "POST", "/v1/jobs", `{"project_id": 99}`) // rejected: in no metric
		require.NoError(t, testutil.GatherAndCompare(s.registry, strings.NewReader(`
# HELP ruleserver_jobs_completed_total Jobs that ended.
# TYPE ruleserver_jobs_completed_total counter
ruleserver_jobs_completed_total{outcome="cancelled",priority="high"} 0
ruleserver_jobs_completed_total{outcome="cancelled",priority="low"} 0
ruleserver_jobs_completed_total{outcome="failed",priority="high"} 0
ruleserver_jobs_completed_total{outcome="failed",priority="low"} 0
ruleserver_jobs_completed_total{outcome="ok",priority="high"} 1
ruleserver_jobs_completed_total{outcome="ok",priority="low"} 3
ruleserver_jobs_completed_total{outcome="timeout",priority="high"} 0
ruleserver_jobs_completed_total{outcome="timeout",priority="low"} 0
`), "ruleserver_jobs_completed_total"))

		page := do(s, t.Context(), "GET", "/metrics", "").Body.String()
		for _, line := range []string{
			// Low waits: 0 s, and twice 20 s behind the first fetch and the high job's.
			`ruleserver_wait_seconds_sum{priority="low"} 40`,
			`ruleserver_wait_seconds_count{priority="low"} 3`,
			`ruleserver_wait_seconds_sum{priority="high"} 10`,
		} {
			assert.Contains(t, page, line+"\n")
		}
	})
}

func TestMetricsAreClean(t *testing.T) {
	s := newServer(t, nil)
	problems, err := testutil.GatherAndLint(s.registry)
	require.NoError(t, err)
	assert.Empty(t, problems)
}
