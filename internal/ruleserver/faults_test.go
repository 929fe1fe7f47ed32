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
