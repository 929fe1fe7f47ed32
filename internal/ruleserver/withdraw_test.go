package ruleserver

import (
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/ruleserver/example"
)

// A job that has not started can be withdrawn. Its response reports that, and its joblets never
// run.
func TestAWaitingJobCanBeWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, func(c *Config) {
			var err error
			c.Feeds, c.Settings.Cores = example.AnyFeeds(), 1
			c.Settings.Cost, err = ParseCost("fetch=10s")
			require.NoError(t, err)
		})
		withdraw := func(id string) int { return do(s, t.Context(), "DELETE", "/v1/jobs/"+id, "").Code }
		var wg sync.WaitGroup
		responses := make([]*httptest.ResponseRecorder, 2)
		for i, id := range []string{"runs", "waits"} {
			wg.Go(func() {
				responses[i] = do(s, t.Context(), "POST", "/v1/jobs", `{"project_id":"`+id+`"}`, "Job-Id: "+id)
			})
			synctest.Wait()
		}
		time.Sleep(time.Second)
		assert.Equal(t, []int{409, 404, 204, 404}, []int{withdraw("runs"), withdraw("other"), withdraw("waits"), func() int { synctest.Wait(); return withdraw("waits") }()})
		wg.Wait()
		w := responses[1]
		assert.Equal(t, []any{503, "withdrawn"}, []any{w.Code, w.Header().Get("Job-Started")})
		assert.Contains(t, w.Body.String(), "urn:ruleserver:withdrawn")
		assert.Equal(t, 200, responses[0].Code)
		assert.Equal(t, 404, withdraw("runs"), "it has ended")
		cached, _ := s.executor.Projects()
		assert.Len(t, cached, 1, "the withdrawn job fetched nothing")
	})
}

// Of two open jobs with the same ID, the first can be withdrawn.
func TestTwoJobsWithOneID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, func(c *Config) {
			var err error
			c.Feeds, c.Settings.Cores = example.AnyFeeds(), 1
			c.Settings.Cost, err = ParseCost("fetch=10s")
			require.NoError(t, err)
		})
		var wg sync.WaitGroup
		codes := make([]int, 3)
		for i, project := range []string{"a", "b", "c"} {
			id := map[bool]string{true: "first", false: "same"}[i == 0]
			wg.Go(func() {
				codes[i] = do(s, t.Context(), "POST", "/v1/jobs", `{"project_id":"`+project+`"}`, "Job-Id: "+id).Code
			})
			synctest.Wait()
		}
		assert.Equal(t, 204, do(s, t.Context(), "DELETE", "/v1/jobs/same", "").Code)
		wg.Wait()
		assert.Equal(t, []int{200, 503, 200}, codes)
	})
}
