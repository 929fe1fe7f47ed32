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

	"example.org/pilotfish/internal/ruleserver/example"
	"example.org/pilotfish/internal/ruleserver/executor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

// newServer makes a server with the example feeds and the default settings, unless
// change sets others.
func newServer(t *testing.T, change func(*Config)) *Server {
	t.Helper()
	c := Config{Settings: Defaults(), Feeds: example.Feeds()}
	if change != nil {
		change(&c)
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
	s := newServer(t, nil)
	w := do(s, t.Context(), "POST", "/v1/jobs", example.Job(), "Accept: text/csv")
	assert.Equal(t, http.StatusOK, w.Code)
	assert.Equal(t, "text/csv", w.Header().Get("Content-Type"))
	want, err := os.ReadFile("example/answer.csv")
	require.NoError(t, err)
	assert.Equal(t, string(want), w.Body.String())

	w = do(s, t.Context(), "POST", "/v1/jobs", example.Job())
	assert.Equal(t, "application/x-ndjson", w.Header().Get("Content-Type"))
	assert.Equal(t, 3, strings.Count(w.Body.String(), "\n"))
	assert.Contains(t, w.Body.String(), `"availability":"out of stock"`)
}

func TestPrefetch(t *testing.T) {
	s := newServer(t, nil)
	assert.Equal(t, http.StatusNoContent, do(s, t.Context(), "POST", "/v1/prefetch", `{"project_id": 12345}`).Code)
	load := s.executor.Load()
	assert.EqualValues(t, 1, load.Totals.Started[executor.Low][executor.FeedSource])
	assert.Zero(t, load.Totals.Started[executor.Low][executor.SharedOperators])
	w := do(s, t.Context(), "POST", "/v1/jobs", example.Job())
	assert.Contains(t, w.Header().Get(hintHeader), "cached=1")
}

func TestMaxJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, func(c *Config) { c.Settings.MaxJobs, c.Settings.Cost = 1, Cost{fetch: jobletCost{base: time.Minute}} })
		var wg sync.WaitGroup
		wg.Go(func() { do(s, t.Context(), "POST", "/v1/prefetch", `{"project_id": 12345}`) })
		synctest.Wait()
		w := do(s, t.Context(), "POST", "/v1/jobs", example.Job())
		assert.Equal(t, http.StatusServiceUnavailable, w.Code)
		assert.Equal(t, "no", w.Header().Get("Job-Started"))
		assert.Contains(t, w.Body.String(), "has 1 jobs, and takes no more")
		wg.Wait()
		assert.Equal(t, http.StatusOK, do(s, t.Context(), "POST", "/v1/jobs", example.Job()).Code)
	})
}

// TestDrain: what is in goes on, nothing comes in, and Wait ends with the last.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, func(c *Config) { c.Settings.Cost = Cost{output: jobletCost{base: time.Minute}} })
		assert.Equal(t, http.StatusOK, do(s, t.Context(), "GET", "/healthz", "").Code)
		begin := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			w := do(s, t.Context(), "POST", "/v1/jobs", example.Job())
			assert.Equal(t, http.StatusOK, w.Code)
		})
		synctest.Wait()

		s.Drain()
		s.Drain()
		assert.True(t, s.Draining())
		w := do(s, t.Context(), "POST", "/v1/jobs", example.Job())
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
	s := newServer(t, func(c *Config) { c.Feeds = files })
	job := func() string { return do(s, t.Context(), "POST", "/v1/jobs", `{"project_id": 2}`).Body.String() }
	assert.JSONEq(t, `{"id":"1"}`, job())
	files["2.csv"] = &fstest.MapFile{Data: []byte("id\n2\n"), ModTime: time.Unix(2, 0)}
	assert.JSONEq(t, `{"id":"2"}`, job())
	projects, _ := s.executor.Projects()
	assert.Len(t, projects, 1)
}

func TestWarm(t *testing.T) {
	s := newServer(t, nil)
	require.NoError(t, s.Warm("12345"))
	w := do(s, t.Context(), "POST", "/v1/jobs", example.Job())
	assert.Contains(t, w.Header().Get(hintHeader), "cached=1")
	require.NoError(t, s.Warm())
	projects, _ := s.executor.Projects()
	assert.Empty(t, projects)
	assert.EqualError(t, s.Warm("../table-1"), `unknown project "../table-1"`)
}

func TestNewRefusesBadConfigurations(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"ruleserver: feeds: there are none":               func(c *Config) { c.Feeds = nil },
		"ruleserver: cores: -1 is not between 1 and 4096": func(c *Config) { c.Settings.Cores = -1 },
		"ruleserver: cache_bytes: -1 must be at least 0":  func(c *Config) { c.Settings.CacheBytes = -1 },
		"ruleserver: max_body: 0 must be at least 1":      func(c *Config) { c.Settings.MaxBody = 0 },
		"ruleserver: max_feed: 0 must be at least 1":      func(c *Config) { c.Settings.MaxFeed = 0 },
		"ruleserver: max_jobs: 0 must be at least 1":      func(c *Config) { c.Settings.MaxJobs = 0 },
	} {
		c := Config{Settings: Defaults(), Feeds: fstest.MapFS{}}
		change(&c)
		_, err := New(c)
		assert.EqualError(t, err, want)
	}
}
