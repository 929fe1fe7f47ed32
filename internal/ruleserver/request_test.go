package ruleserver

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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
	"example.org/pilotfish/internal/ruleserver/rules"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/test/memnet"
)

// clientOf serves s on a network in memory, and returns a client.
func clientOf(t *testing.T, s *Server) *http.Client {
	t.Helper()
	var network memnet.Network
	listener := network.Listen("rps:80")
	web := &http.Server{Handler: s.Handler()}
	go web.Serve(listener)
	transport := &http.Transport{DialContext: network.Dial}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = web.Close()
	})
	return &http.Client{Transport: transport}
}

const jobsURL = "http://rps/v1/jobs"

// TestBodyTimeout: a body that does not arrive in time ends the job.
func TestBodyTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(records)
		c := clientOf(t, newServer(t, func(c *Config) { c.OnJob = log.add }))
		body, rest := io.Pipe()
		defer rest.Close()
		begin := time.Now()
		response, err := c.Post(jobsURL, "", body)
		require.NoError(t, err)
		response.Body.Close()
		assert.Equal(t, bodyTimeout, time.Since(begin))
		assert.Equal(t, http.StatusBadRequest, response.StatusCode)
		assert.Equal(t, outcomeRejected, log.last(t).Outcome)
	})
}

// TestALongJobWithAWholeBody: the timeout for the body does not apply to the job's run.
func TestALongJobWithAWholeBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clientOf(t, newServer(t, func(c *Config) { c.Settings.Cost = Cost{fetch: 2 * bodyTimeout} }))
		begin := time.Now()
		response, err := c.Post(jobsURL, "", strings.NewReader(anyJob))
		require.NoError(t, err)
		response.Body.Close()
		assert.Equal(t, 2*bodyTimeout, time.Since(begin))
		assert.Equal(t, http.StatusOK, response.StatusCode)
	})
}

// TestStreamTimeout: a response that is not read in time is truncated, and the client can detect it. Each response of a
// connection has its own timeout.
func TestStreamTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 1 << 20 // more than buffers hold
		log, feed := new(records), "id\n"+strings.Repeat(strings.Repeat("x", 1023)+"\n", size>>10)
		c := clientOf(t, newServer(t, func(c *Config) { c.Feeds, c.OnJob = fstest.MapFS{"1.csv": {Data: []byte(feed)}}, log.add }))
		for _, step := range []struct {
			pause   time.Duration
			outcome Outcome
		}{{9 * time.Second, outcomeOK}, {9 * time.Second, outcomeOK}, {11 * time.Second, outcomeTimeout}, {0, outcomeCancelled}} {
			response, err := c.Post(jobsURL, "", strings.NewReader(`{"project_id": 1, "timeouts": {"stream_seconds": 10}}`))
			require.NoError(t, err)
			assert.Equal(t, http.StatusOK, response.StatusCode)
			time.Sleep(step.pause)
			if step.outcome != outcomeCancelled {
				n, err := io.Copy(io.Discard, response.Body)
				assert.Equal(t, step.outcome == outcomeOK, err == nil, "a truncated response must not look complete: %v", err)
				assert.Equal(t, step.outcome == outcomeOK, n > size)
			}
			response.Body.Close()
			synctest.Wait()
			assert.Equal(t, step.outcome, log.last(t).Outcome)
			assert.Equal(t, step.outcome == outcomeOK, log.last(t).Bytes > size)
		}
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
