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
	"example.org/pilotfish/internal/ruleserver/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// records collects the records that a server reports.
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

// newServer returns a server with the example feeds and the default settings, modified by
// change.
func newServer(t *testing.T, change func(*Config)) *Server {
	t.Helper()
	c := Config{Settings: Defaults(), Feeds: os.DirFS("example/feeds")}
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

// hasMetrics checks that the metrics have these lines.
func hasMetrics(t *testing.T, s *Server, lines ...string) {
	t.Helper()
	page := do(s, t.Context(), "GET", "/metrics", "").Body.String()
	for _, line := range lines {
		assert.Contains(t, page, "\nruleserver_"+line+"\n")
	}
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

func TestMaxJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, func(c *Config) { c.Settings.MaxJobs, c.Settings.Cost = 1, Cost{fetch: time.Minute} })
		var wg sync.WaitGroup
		wg.Go(func() { do(s, t.Context(), "POST", "/v1/jobs", `{"project_id": 12345}`) })
		synctest.Wait()
		w := do(s, t.Context(), "POST", "/v1/jobs", example.Job())
		assert.Equal(t, http.StatusServiceUnavailable, w.Code)
		assert.Equal(t, "no", w.Header().Get("Job-Started"))
		assert.Contains(t, w.Body.String(), "it has 1 jobs")
		wg.Wait()
		assert.Equal(t, http.StatusOK, do(s, t.Context(), "POST", "/v1/jobs", example.Job()).Code)
	})
}

// TestDrain: open jobs go on, new ones are refused, and the server is drained when the last
// open job ends.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, func(c *Config) { c.Settings.Cost = Cost{output: time.Minute} })
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
		w := do(s, t.Context(), "POST", "/v1/jobs", example.Job())
		assert.Equal(t, http.StatusServiceUnavailable, w.Code)
		assert.Equal(t, "no", w.Header().Get("Job-Started"))
		assert.Equal(t, http.StatusServiceUnavailable, do(s, t.Context(), "GET", "/healthz", "").Code)
		assert.Equal(t, http.StatusOK, do(s, t.Context(), "GET", "/metrics", "").Code)

		assert.False(t, s.Drained(), "a job is open")
		wg.Wait()
		assert.Equal(t, time.Minute, time.Since(begin))
		assert.True(t, s.Drained())
	})
}

// TestChangedFeed: a change of a feed's file invalidates its cached results.
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

// TestFeedsStayInside: neither a name nor a link can lead out of the directory.
func TestFeedsStayInside(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/secret.csv", []byte("id\n1\n"), 0o600))
	require.NoError(t, os.Mkdir(dir+"/feeds", 0o700))
	require.NoError(t, os.Symlink("../secret.csv", dir+"/feeds/link.csv"))
	root, err := os.OpenRoot(dir + "/feeds")
	require.NoError(t, err)
	defer root.Close()
	f := feeds{files: root.FS(), maxBytes: 100}
	for _, project := range []rules.Project{"../secret", "link", "", ".", "a/b", "a\x00b"} {
		_, err := f.version(project)
		assert.Error(t, err, "%q", project)
	}
}
