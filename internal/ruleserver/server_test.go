package ruleserver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.org/pilotfish/internal/ruleserver/executor"
	"example.org/pilotfish/internal/ruleserver/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testdata = "../../testdata/"

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(testdata + name)
	require.NoError(t, err)
	return string(data)
}

// records collects what a server says of its jobs.
type records struct {
	mu  sync.Mutex
	all []Record
}

func (r *records) add(one Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, one)
}

func (r *records) last(t *testing.T) Record {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	require.NotEmpty(t, r.all)
	return r.all[len(r.all)-1]
}

// newServer makes a server with the example feed, whatever else c says.
func newServer(t *testing.T, c Config) *Server {
	t.Helper()
	if c.Feeds == nil {
		c.Feeds = os.DirFS(testdata + "feeds")
	}
	s, err := New(c)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// do sends a request without a network. Options are "Header: value".
func do(s *Server, ctx context.Context, method, path, body string, options ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	for _, option := range options {
		name, value, _ := strings.Cut(option, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w
}

func TestThesisExample(t *testing.T) {
	s := newServer(t, Config{})
	w := do(s, t.Context(), "POST", "/v1/jobs", readFile(t, "listing-1.json"), "Accept: text/csv")
	assert.Equal(t, http.StatusOK, w.Code)
	assert.Equal(t, "text/csv", w.Header().Get("Content-Type"))
	assert.Equal(t, readFile(t, "table-2.csv"), w.Body.String())

	w = do(s, t.Context(), "POST", "/v1/jobs", readFile(t, "listing-1.json"))
	assert.Equal(t, "application/x-ndjson", w.Header().Get("Content-Type"))
	assert.Equal(t, 3, strings.Count(w.Body.String(), "\n"))
	assert.Contains(t, w.Body.String(), `"availability":"out of stock"`)
}

func TestPrefetch(t *testing.T) {
	s := newServer(t, Config{})
	assert.Equal(t, http.StatusNoContent, do(s, t.Context(), "POST", "/v1/prefetch", `{"project_id": 12345}`).Code)
	load := s.executor.Load()
	assert.EqualValues(t, 1, load.Totals.Started[executor.Low][executor.FeedSource])
	assert.Zero(t, load.Totals.Started[executor.Low][executor.SharedOperators])
	w := do(s, t.Context(), "POST", "/v1/jobs", readFile(t, "listing-1.json"))
	assert.Contains(t, w.Header().Get(HintHeader), "cached=1")
}

// TestProblems: every refusal has its status, its type and what a submitter
// needs to go on.
func TestProblems(t *testing.T) {
	files := fstest.MapFS{
		"broken.csv": {Data: []byte("id,id\n")},
		"large.csv":  {Data: []byte("id\n" + strings.Repeat("x", 1000))},
		"grow.csv":   {Data: []byte("id\n" + strings.Repeat("x", 400))},
	}
	s := newServer(t, Config{Feeds: files, MaxBody: 300, MaxFeed: 500})
	grow := `{"project_id":"grow","operators":[{"actions":[{"field":"id","action":"append","value":{"type":"field","value":"id"}}]}]}`
	for _, c := range []struct {
		path, body, option string
		status             int
		kind, detail       string
	}{
		{"/v1/jobs", `{"project_id": 1, "priority": "urgent"}`, "", 400, "malformed-job", `/priority: want \"high\" or \"low\", got \"urgent\"`},
		{"/v1/prefetch", `{}`, "", 400, "malformed-job", "/project_id: missing"},
		{"/v1/jobs", `{"project_id": 1}` + strings.Repeat(" ", 300), "", 413, "body-too-large", "too large"},
		{"/v1/jobs", `{"project_id": 1}`, "Content-Encoding: gzip", 415, "body-encoded", "send it as it is"},
		{"/v1/jobs", `{"project_id": 7}`, "", 404, "unknown-project", "there is no feed 7.csv"},
		{"/v1/jobs", `{"project_id": "broken"}`, "", 500, "feed-unreadable", `feed broken.csv: line 1: column 2 is named \"id\"`},
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

// TestQueueTimeout: a job that no core takes in time says that nothing was done.
func TestQueueTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(records)
		s := newServer(t, Config{
			Feeds: fstest.MapFS{"1.csv": {Data: []byte("id\n1\n")}, "2.csv": {Data: []byte("id\n1\n")}},
			Cores: 1, Cost: Cost{Fetch: JobletCost{Base: time.Minute}}, OnJob: log.add,
		})
		var wg sync.WaitGroup
		wg.Go(func() { do(s, t.Context(), "POST", "/v1/prefetch", `{"project_id": 1}`) })
		synctest.Wait()

		begin := time.Now()
		w := do(s, t.Context(), "POST", "/v1/jobs", `{"project_id": 2, "timeouts": {"queue_seconds": 15}}`)
		assert.Equal(t, 15*time.Second, time.Since(begin))
		assert.Equal(t, http.StatusServiceUnavailable, w.Code)
		assert.Equal(t, "1", w.Header().Get("Retry-After"))
		assert.Equal(t, "no", w.Header().Get("Job-Started"))
		assert.Contains(t, w.Body.String(), "queue-timeout")
		assert.Equal(t, Timeout, log.last(t).Outcome)
		wg.Wait()
	})
}

func TestEvaluateTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, Config{
			Feeds: fstest.MapFS{"2.csv": {Data: []byte("id\n1\n")}},
			Cost:  Cost{Operators: JobletCost{Base: time.Minute}},
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

// TestSubmitterGone: its joblets are cancelled.
func TestSubmitterGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(records)
		s := newServer(t, Config{Cost: Cost{Fetch: JobletCost{Base: time.Minute}}, OnJob: log.add})
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		var wg sync.WaitGroup
		wg.Go(func() { do(s, ctx, "POST", "/v1/jobs", readFile(t, "listing-1.json")) })
		time.Sleep(500 * time.Millisecond)
		assert.Equal(t, 1, s.executor.Load().Running[executor.High])
		wg.Wait()
		assert.Equal(t, 0, s.executor.Load().Running[executor.High])
		time.Sleep(2 * time.Minute)
		assert.EqualValues(t, 1, s.executor.Load().Totals.Completed[executor.High][executor.FeedSource])
		assert.Zero(t, s.executor.Load().Totals.Started[executor.High][executor.SharedOperators])
	})
}

func TestMaxJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, Config{MaxJobs: 1, Cost: Cost{Fetch: JobletCost{Base: time.Minute}}})
		var wg sync.WaitGroup
		wg.Go(func() { do(s, t.Context(), "POST", "/v1/prefetch", `{"project_id": 12345}`) })
		synctest.Wait()
		w := do(s, t.Context(), "POST", "/v1/jobs", readFile(t, "listing-1.json"))
		assert.Equal(t, http.StatusServiceUnavailable, w.Code)
		assert.Equal(t, "no", w.Header().Get("Job-Started"))
		assert.Contains(t, w.Body.String(), "has 1 jobs, and takes no more")
		wg.Wait()
		assert.Equal(t, http.StatusOK, do(s, t.Context(), "POST", "/v1/jobs", readFile(t, "listing-1.json")).Code)
	})
}

// TestDrain: what is in goes on, nothing comes in, and Wait ends with the last.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, Config{Cost: Cost{Output: JobletCost{Base: time.Minute}}})
		assert.Equal(t, http.StatusOK, do(s, t.Context(), "GET", "/healthz", "").Code)
		begin := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			w := do(s, t.Context(), "POST", "/v1/jobs", readFile(t, "listing-1.json"))
			assert.Equal(t, http.StatusOK, w.Code)
		})
		synctest.Wait()

		s.Drain()
		s.Drain()
		assert.True(t, s.Draining())
		w := do(s, t.Context(), "POST", "/v1/jobs", readFile(t, "listing-1.json"))
		assert.Equal(t, http.StatusServiceUnavailable, w.Code)
		assert.Equal(t, "no", w.Header().Get("Job-Started"))
		assert.Equal(t, http.StatusServiceUnavailable, do(s, t.Context(), "GET", "/healthz", "").Code)
		assert.Equal(t, http.StatusOK, do(s, t.Context(), "GET", "/metrics", "").Code)

		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, s.Wait(short), context.DeadlineExceeded)
		require.NoError(t, s.Wait(t.Context()))
		assert.Equal(t, time.Minute, time.Since(begin))
		wg.Wait()
	})
}

// TestChangedFeed: a file that changes voids what is cached of it.
func TestChangedFeed(t *testing.T) {
	files := fstest.MapFS{"2.csv": {Data: []byte("id\n1\n"), ModTime: time.Unix(1, 0)}}
	s := newServer(t, Config{Feeds: files})
	job := func() string { return do(s, t.Context(), "POST", "/v1/jobs", `{"project_id": 2}`).Body.String() }
	assert.JSONEq(t, `{"id":"1"}`, job())
	files["2.csv"] = &fstest.MapFile{Data: []byte("id\n2\n"), ModTime: time.Unix(2, 0)}
	assert.JSONEq(t, `{"id":"2"}`, job())
	projects, _ := s.executor.Projects()
	assert.Len(t, projects, 1)
}

func TestWarm(t *testing.T) {
	s := newServer(t, Config{})
	require.NoError(t, s.Warm("12345"))
	w := do(s, t.Context(), "POST", "/v1/jobs", readFile(t, "listing-1.json"))
	assert.Contains(t, w.Header().Get(HintHeader), "cached=1")
	require.NoError(t, s.Warm())
	projects, _ := s.executor.Projects()
	assert.Empty(t, projects)
	assert.EqualError(t, s.Warm("../table-1"), `unknown project "../table-1"`)
}

func TestNewRefusesNonsense(t *testing.T) {
	feeds := fstest.MapFS{}
	for want, c := range map[string]Config{
		"ruleserver: no feeds are given":                      {},
		"ruleserver: cores: want 1 to 4096, got -1":           {Feeds: feeds, Cores: -1},
		"ruleserver: the greatest body must not be negative":  {Feeds: feeds, MaxBody: -1},
		"ruleserver: the queue timeout must not be negative":  {Feeds: feeds, Timeouts: rules.Timeouts{Queue: -1}},
		"ruleserver: the number of jobs must not be negative": {Feeds: feeds, MaxJobs: -1},
	} {
		_, err := New(c)
		assert.EqualError(t, err, want)
	}
}
