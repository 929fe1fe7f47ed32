package ruleserver

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/ruleserver/example"
	"example.org/pilotfish/internal/ruleserver/executor"
	"example.org/pilotfish/internal/ruleserver/rules"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/test/memnet"
)

// served sends the text of a request to a server on a network in memory. It returns the status
// of the response, and the time to its first byte.
func served(t *testing.T, s *Server, text string) (status int, took time.Duration) {
	t.Helper()
	var network memnet.Network
	web := &http.Server{Handler: s.Handler()}
	var serving sync.WaitGroup
	listener := network.Listen("rps:80")
	serving.Go(func() { _ = web.Serve(listener) })
	submitter, err := network.Dial(t.Context(), "tcp", "rps:80")
	require.NoError(t, err)
	begin := time.Now()
	fmt.Fprint(submitter, text)
	response, err := http.ReadResponse(bufio.NewReader(submitter), nil)
	require.NoError(t, err)
	took = time.Since(begin)
	response.Body.Close()
	require.NoError(t, submitter.Close())
	require.NoError(t, web.Close())
	serving.Wait()
	synctest.Wait()
	return response.StatusCode, took
}

// TestBodyTimeout: a body that does not arrive in time ends the job.
func TestBodyTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(records)
		s := newServer(t, func(c *Config) { c.OnJob = log.add })
		status, took := served(t, s, "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
		assert.Equal(t, bodyTimeout, took)
		assert.Equal(t, http.StatusBadRequest, status)
		assert.Equal(t, outcomeRejected, log.last(t).Outcome)
	})
}

// TestALongJobWithAWholeBody: the timeout for the body does not apply to the job's run.
func TestALongJobWithAWholeBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, func(c *Config) { c.Settings.Cost = Cost{fetch: 2 * bodyTimeout} })
		status, took := served(t, s, "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 21\r\n\r\n"+`{"project_id": 12345}`)
		assert.Equal(t, 2*bodyTimeout, took)
		assert.Equal(t, http.StatusOK, status)
	})
}

// The effect of the header and of learned lengths on the order of jobs.
func TestOrders(t *testing.T) {
	for order, want := range map[string]executor.Request{
		OrderExpected: {Expected: 2 * time.Second}, OrderHeader: {Expected: 2 * time.Second, Unlearned: true}, OrderArrival: {Unlearned: true},
	} {
		s := newServer(t, func(c *Config) { c.Settings.Order = order })
		job, err := rules.ParseJob([]byte(`{"project_id": 12345}`))
		require.NoError(t, err)
		got, err := s.request(task{job: job, expected: 2 * time.Second})
		require.NoError(t, err)
		assert.Equal(t, want, executor.Request{Expected: got.Expected, Unlearned: got.Unlearned}, order)
	}
	c := Defaults()
	c.Order = "random"
	var f settings.Faults
	c.Check(&f)
	assert.ErrorContains(t, f.Err(), `order: "random" is not one of expected, header, arrival`)
}

func TestExpected(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"2.3": 2300 * time.Millisecond, "": 0, "-1": 0, "NaN": 0, "1e9": 0, "soon": 0,
	} {
		assert.Equal(t, want, expected(http.Header{"Job-Expected": {text}}), text)
	}
}

// queued sends jobs with these identifiers to a server with one core, each of another project, whose fetch takes 10 s. The
// first one runs, the others wait. wait returns all responses.
func queued(t *testing.T, ids ...string) (s *Server, wait func() []*httptest.ResponseRecorder) {
	t.Helper()
	s = newServer(t, func(c *Config) {
		c.Feeds, c.Settings.Cores, c.Settings.Cost = example.AnyFeeds(), 1, Cost{fetch: 10 * time.Second}
	})
	var jobs sync.WaitGroup
	responses := make([]*httptest.ResponseRecorder, len(ids))
	for i, id := range ids {
		jobs.Go(func() {
			responses[i] = do(s, t.Context(), "POST", "/v1/jobs", fmt.Sprintf(`{"project_id": %d}`, i), "Job-Id: "+id)
		})
		synctest.Wait()
	}
	return s, func() []*httptest.ResponseRecorder { jobs.Wait(); return responses }
}

// A job that has not started can be withdrawn. Its response reports that, and its joblets never
// run.
func TestAWaitingJobCanBeWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, wait := queued(t, "runs", "waits")
		withdraw := func(id string) int { return do(s, t.Context(), "DELETE", "/v1/jobs/"+id, "").Code }
		time.Sleep(time.Second)
		assert.Equal(t, []int{409, 404, 204, 404}, []int{withdraw("runs"), withdraw("other"), withdraw("waits"), func() int { synctest.Wait(); return withdraw("waits") }()})
		responses := wait()
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
		s, wait := queued(t, "first", "same", "same")
		assert.Equal(t, 204, do(s, t.Context(), "DELETE", "/v1/jobs/same", "").Code)
		for i, code := range []int{200, 503, 200} {
			assert.Equal(t, code, wait()[i].Code, "job %d", i)
		}
	})
}
