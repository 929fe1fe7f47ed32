package ruleserver

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/ruleserver/example"
	"example.org/pilotfish/internal/ruleserver/executor"
)

// TestProblems: every refusal has its status, its type and the facts that a submitter needs for
// a retry.
func TestProblems(t *testing.T) {
	files := fstest.MapFS{
		"broken.csv": {Data: []byte("id,id\n")},
		"large.csv":  {Data: []byte("id\n" + strings.Repeat("x", 1000))},
		"grow.csv":   {Data: []byte("id\n" + strings.Repeat("x", 400))},
	}
	s := newServer(t, func(c *Config) {
		c.Feeds, c.Settings.MaxBody, c.Settings.MaxFeed, c.Settings.TrustCost = files, 300, 500, true
	})
	grow := `{"project_id":"grow","operators":[{"actions":[{"field":"id","action":"combine","value":[{"type":"field","value":"id"},{"type":"field","value":"id"}]}]}]}`
	for _, c := range []struct {
		path, body, option string
		status             int
		kind, detail       string
	}{
		{"/v1/jobs", `{"project_id": 1, "priority": "urgent"}`, "", 400, "malformed-job", `/priority: want \"high\" or \"low\", got \"urgent\"`},
		{"/v1/jobs", `{}`, "", 400, "malformed-job", "/project_id: missing"},
		{"/v1/jobs", `{"project_id": 1}` + strings.Repeat(" ", 300), "", 413, "body-too-large", "too large"},
		{"/v1/jobs", `{"project_id": 1}`, "Content-Encoding: gzip", 415, "body-encoded", "send it unencoded"},
		{"/v1/jobs", `{"project_id": 1}`, costHeader + ": fetch=much", 400, "malformed-cost", `X-Cost: cost: fetch: want`},
		{"/v1/jobs", `{"project_id": 7}`, "", 404, "unknown-project", "there is no feed 7.csv"},
		{"/v1/jobs", `{"project_id": "broken"}`, "", 500, "feed-unreadable", `feed broken.csv: line 1: column 2 has the name \"id\"`},
		{"/v1/jobs", `{"project_id": "large"}`, "", 500, "feed-unreadable", "feed large.csv: larger than 500 bytes"},
		{"/v1/jobs", grow, "", 422, "result-too-large", "more than 500 bytes"},
	} {
		w := do(s, t.Context(), "POST", c.path, c.body, c.option)
		assert.Equal(t, c.status, w.Code, c.body)
		assert.Equal(t, "application/problem+json", w.Header().Get("Content-Type"), c.body)
		assert.Contains(t, w.Body.String(), `"type":"urn:ruleserver:`+c.kind+`"`, c.body)
		assert.Contains(t, w.Body.String(), c.detail, c.body)
		assert.Empty(t, w.Header().Get("Job-Started"), c.body)
	}
	w := do(s, t.Context(), "POST", "/v1/jobs", `{"project_id": [1]}`)
	assert.Contains(t, w.Body.String(), `"path":"/project_id"`)
	assert.Equal(t, http.StatusMethodNotAllowed, do(s, t.Context(), "GET", "/v1/jobs", "").Code)
}

// TestQueueTimeout: the response to a job that got no core in time reports that nothing was
// done.
func TestQueueTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(records)
		s := newServer(t, func(c *Config) {
			c.Feeds = example.AnyFeeds()
			c.Settings.Cores, c.Settings.Cost = 1, Cost{fetch: time.Minute}
			c.OnJob = log.add
		})
		var wg sync.WaitGroup
		wg.Go(func() { do(s, t.Context(), "POST", "/v1/jobs", `{"project_id": 1}`) })
		synctest.Wait()

		begin := time.Now()
		w := do(s, t.Context(), "POST", "/v1/jobs", `{"project_id": 2, "timeouts": {"queue_seconds": 15}}`)
		assert.Equal(t, 15*time.Second, time.Since(begin))
		assert.Equal(t, http.StatusServiceUnavailable, w.Code)
		assert.Equal(t, "1", w.Header().Get("Retry-After"))
		assert.Equal(t, "no", w.Header().Get("Job-Started"))
		assert.Contains(t, w.Body.String(), "queue-timeout")
		assert.Equal(t, outcomeTimeout, log.last(t).Outcome)
		wg.Wait()
	})
}

func TestEvaluateTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, func(c *Config) {
			c.Feeds, c.Settings.Cost = example.AnyFeeds(), Cost{operators: time.Minute}
		})
		begin := time.Now()
		w := do(s, t.Context(), "POST", "/v1/jobs", `{"project_id": 2, "timeouts": {"evaluate_seconds": 30}}`)
		assert.Equal(t, 30*time.Second, time.Since(begin))
		assert.Equal(t, http.StatusGatewayTimeout, w.Code)
		assert.Contains(t, w.Body.String(), "evaluate-timeout")
		assert.Empty(t, w.Header().Get("Job-Started"), "it did start")
		assert.Equal(t, 1, s.executor.Load().Busy, "a joblet that runs is not interrupted")
	})
}

// TestSubmitterGone: the joblets of a job whose submitter disconnects are cancelled.
func TestSubmitterGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(records)
		s := newServer(t, func(c *Config) { c.Settings.Cost, c.OnJob = Cost{fetch: time.Minute, shared: time.Hour}, log.add })
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		var wg sync.WaitGroup
		wg.Go(func() { do(s, ctx, "POST", "/v1/jobs", example.Job()) })
		time.Sleep(500 * time.Millisecond)
		assert.Equal(t, 1, s.executor.Load().Running[executor.High])
		wg.Wait()
		assert.Equal(t, 0, s.executor.Load().Running[executor.High])
		time.Sleep(2 * time.Minute)
		assert.Zero(t, s.executor.Load().Busy, "its shared rules are not begun")
	})
}

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

		hasMetrics(t, s, `prefetches_completed_total{outcome="ok"} 1`,
			`jobs_completed_total{outcome="ok",priority="low"} 1`, `jobs_completed_total{outcome="ok",priority="high"} 0`)
	})
}

// A prefetch runs before low jobs that wait for a core.
func TestAPrefetchHasHighPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, func(c *Config) {
			c.Feeds = example.AnyFeeds()
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
		for kind, want := range map[string]struct{ executed, cached, joined, seconds int }{
			"feed_source": {1, 1, 1, 3}, "shared_operators": {1, 1, 1, 0}, "operators": {2, 1, 0, 0}, "output_feed": {2, 1, 0, 2},
		} {
			hasMetrics(t, s, fmt.Sprintf("joblets_executed_total{kind=%q} %d", kind, want.executed),
				fmt.Sprintf(`joblets_saved_total{how="cached",kind=%q} %d`, kind, want.cached),
				fmt.Sprintf(`joblets_saved_total{how="joined",kind=%q} %d`, kind, want.joined),
				fmt.Sprintf("joblet_run_seconds_total{kind=%q} %d", kind, want.seconds))
		}

		begin := time.Now() // its response was not kept, but the results of the joblets before it were
		do(s, t.Context(), "POST", "/v1/jobs", `{"project_id": 12345, "operators": [{"actions": [{"field": "title", "action": "remove"}]}]}`)
		assert.Equal(t, time.Second, time.Since(begin))
	})
}
