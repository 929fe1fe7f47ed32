package ruleserver

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseCost(t *testing.T) {
	c, err := ParseCost("fetch=2s,shared=400ms,bytes=5000,output=100ms,operators=800ms,cores=4")
	require.NoError(t, err)
	assert.Equal(t, Cost{fetch: 2 * time.Second, shared: 400 * time.Millisecond, operators: 800 * time.Millisecond, output: 100 * time.Millisecond, bytes: 5000, cores: 4}, c)
	c, err = ParseCost("")
	require.NoError(t, err)
	assert.Zero(t, c)
	for text, want := range map[string]string{
		"fetch":             `cost: fetch: want a duration such as 2s or 400ms, got ""`,
		"fetch=-2s":         `cost: fetch: want a duration such as 2s or 400ms, got "-2s"`,
		"load=2s":           `cost: "load" is unknown or given twice; known are fetch, shared, operators, output, bytes, cores`,
		"cores=-1":          `cost: cores: want a number above 0, got "-1"`,
		"bytes=0":           `cost: bytes: want a number above 0, got "0"`,
		"bytes=1,bytes=2":   `cost: "bytes" is unknown or given twice; known are fetch, shared, operators, output, bytes, cores`,
		"fetch=2s,fetch=3s": `cost: "fetch" is unknown or given twice; known are fetch, shared, operators, output, bytes, cores`,
	} {
		_, err := ParseCost(text)
		assert.EqualError(t, err, want)
	}
}

func TestJobsBringTheirOwnCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := costHeader + ": fetch=7s,shared=40ms,output=100ms"
		server := Cost{fetch: time.Second}
		for name, c := range map[string]struct {
			trust   bool
			options []string
			want    time.Duration
		}{
			"its own":         {true, []string{own}, 7140 * time.Millisecond},
			"several cores":   {true, []string{own + ",operators=800ms,cores=4"}, 7235 * time.Millisecond},
			"none of its own": {true, nil, time.Second},
			"not trusted":     {false, []string{own}, time.Second},
			"not even read":   {false, []string{costHeader + ": nonsense"}, time.Second},
		} {
			s := newServer(t, func(config *Config) { config.Settings.Cost, config.Settings.TrustCost = server, c.trust })
			begin := time.Now()
			w := do(s, t.Context(), "POST", "/v1/jobs", `{"project_id": 12345}`, c.options...)
			require.Equal(t, http.StatusOK, w.Code, name)
			assert.Equal(t, c.want, time.Since(begin), name)
			s.Close()
		}
	})
}

// A feed is listed with the size from its job, so that a laptop can simulate the caches of a cluster.
func TestCostSetsTheFeedsSize(t *testing.T) {
	s := newServer(t, func(c *Config) { c.Settings.TrustCost = true })
	do(s, t.Context(), "POST", "/v1/jobs", `{"project_id": 12345}`, costHeader+": bytes=5000000")
	assert.Contains(t, do(s, t.Context(), "GET", "/v1/cache/projects", "").Body.String(), `"bytes":5000000`)
}

const anyJob = `{"project_id": 12345}`

// misbehaving returns a server that accepts fault modes.
func misbehaving(t *testing.T, change func(*Config)) *Server {
	t.Helper()
	return newServer(t, func(c *Config) {
		c.Settings.Faults = true
		if change != nil {
			change(c)
		}
	})
}

// put sets a mode.
func put(s *Server, mode faultMode) *httptest.ResponseRecorder {
	r := httptest.NewRequest("PUT", "/v1/fault", strings.NewReader(string(mode)+"\n"))
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w
}

func TestFaultModesOfJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := misbehaving(t, func(c *Config) { c.Settings.Cost = Cost{output: time.Second} })
		job := func() (status int, hint string, took time.Duration) {
			begin := time.Now()
			w := do(s, t.Context(), "POST", "/v1/jobs", anyJob)
			return w.Code, w.Header().Get(hintHeader), time.Since(begin)
		}
		require.NoError(t, s.Warm("12345"))
		status, hint, took := job()
		assert.Equal(t, []any{200, time.Second}, []any{status, took})
		assert.NotEmpty(t, hint)

		require.NoError(t, s.Warm("12345"))
		put(s, faultFail)
		status, _, took = job()
		assert.Equal(t, []any{500, time.Duration(0)}, []any{status, took})
		assert.Equal(t, 200, do(s, t.Context(), "GET", "/metrics", "").Code, "reports are well")

		put(s, faultSilent)
		status, hint, _ = job()
		assert.Equal(t, []any{200, ""}, []any{status, hint})
		assert.Equal(t, 404, do(s, t.Context(), "GET", "/metrics", "").Code)
		assert.Equal(t, 404, do(s, t.Context(), "GET", "/v1/cache/projects", "").Code)

		put(s, faultLieCores)
		_, hint, _ = job()
		assert.Contains(t, hint, "cores=4000")
		assert.Contains(t, do(s, t.Context(), "GET", "/metrics", "").Body.String(), "\nruleserver_cores 4000\n")

		put(s, faultNone)
		status, hint, _ = job()
		assert.Equal(t, 200, status)
		assert.NotEmpty(t, hint)
	})
}

func TestFaultsNeedTheFlag(t *testing.T) {
	w := put(misbehaving(t, nil), "sulk")
	assert.Equal(t, http.StatusBadRequest, w.Code)
	assert.Equal(t, "want one of [none fail silent lie-cores]\n", w.Body.String())
	assert.Equal(t, http.StatusNotFound, put(newServer(t, nil), faultFail).Code, "the flag is not set")
}
