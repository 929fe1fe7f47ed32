package ruleserver

import (
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/ruleserver/executor"
)

const anyJob = `{"project_id": 12345}`

// misbehaving is a server that takes fault modes.
func misbehaving(t *testing.T, change func(*Config)) *Server {
	t.Helper()
	return newServer(t, func(c *Config) {
		c.Settings.Faults = true
		if change != nil {
			change(c)
		}
	})
}

// put sets a mode as a test does, from this machine.
func put(s *Server, mode faultMode) *httptest.ResponseRecorder {
	r := httptest.NewRequest("PUT", "/v1/fault", strings.NewReader(string(mode)+"\n"))
	r.RemoteAddr = "127.0.0.1:1234"
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w
}

func TestFaultModesOfJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := misbehaving(t, func(c *Config) { c.Settings.Cost = Cost{output: jobletCost{base: time.Second}} })
		job := func() (status int, body string, hint string, took time.Duration) {
			begin := time.Now()
			w := do(s, t.Context(), "POST", "/v1/jobs", anyJob)
			return w.Code, w.Body.String(), w.Header().Get(hintHeader), time.Since(begin)
		}
		require.NoError(t, s.Warm("12345"))
		status, _, hint, took := job()
		assert.Equal(t, []any{200, time.Second}, []any{status, took})
		assert.NotEmpty(t, hint)

		require.NoError(t, s.Warm("12345"))
		put(s, faultSlow)
		status, _, _, took = job()
		assert.Equal(t, []any{200, 10 * time.Second}, []any{status, took})

		put(s, faultFail)
		status, _, _, took = job()
		assert.Equal(t, []any{500, time.Duration(0)}, []any{status, took})
		assert.Equal(t, 200, do(s, t.Context(), "GET", "/metrics", "").Code, "reports are well")

		put(s, faultEmpty)
		status, body, _, took := job()
		assert.Equal(t, []any{200, "", time.Duration(0)}, []any{status, body, took})

		put(s, faultFlap)
		var turns []int
		for range 4 {
			status, _, _, _ = job()
			turns = append(turns, status)
			time.Sleep(flapTurn)
		}
		assert.Equal(t, []int{500, 200, 500, 200}, turns)

		put(s, faultSilent)
		status, _, hint, _ = job()
		assert.Equal(t, []any{200, ""}, []any{status, hint})
		assert.Equal(t, 404, do(s, t.Context(), "GET", "/metrics", "").Code)
		assert.Equal(t, 404, do(s, t.Context(), "GET", "/v1/cache/projects", "").Code)

		put(s, faultNone)
		status, _, hint, _ = job()
		assert.Equal(t, 200, status)
		assert.NotEmpty(t, hint)
	})
}

// TestFaultsAreForThisMachine: neither another one nor a web page sets a mode.
func TestFaultsAreForThisMachine(t *testing.T) {
	s := misbehaving(t, nil)
	for _, c := range []struct {
		from, origin string
		status       int
	}{
		{"127.0.0.1:1234", "", 200}, {"[::ffff:127.0.0.1]:1234", "", 200},
		{"192.0.2.1:1234", "", 403}, {"127.0.0.1:1234", "http://example.org", 403}, {"nonsense", "", 403},
	} {
		r := httptest.NewRequest("PUT", "/v1/fault", strings.NewReader("none"))
		r.RemoteAddr = c.from
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		assert.Equal(t, c.status, w.Code, "%+v", c)
	}
}

func TestHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := misbehaving(t, nil)
		put(s, faultHang)
		begin := time.Now()
		var hanging sync.WaitGroup
		hanging.Go(func() {
			w := do(s, t.Context(), "POST", "/v1/jobs", anyJob)
			assert.Equal(t, http.StatusOK, w.Code, "it goes on with the job when the mode ends")
			assert.Equal(t, time.Hour, time.Since(begin))
		})
		for _, path := range []string{"/metrics", "/v1/cache/projects", "/healthz"} {
			hanging.Go(func() {
				do(s, t.Context(), "GET", path, "")
				assert.Equal(t, time.Hour, time.Since(begin))
			})
		}
		gone, leave := context.WithTimeout(t.Context(), time.Minute)
		defer leave()
		assert.PanicsWithValue(t, http.ErrAbortHandler, func() { do(s, gone, "POST", "/v1/jobs", anyJob) }, "the submitter left")
		assert.Equal(t, time.Minute, time.Since(begin))

		time.Sleep(time.Hour - time.Minute)
		put(s, faultNone)
		hanging.Wait()
	})
}

func TestLies(t *testing.T) {
	s := misbehaving(t, nil)
	tell := func(mode faultMode) string {
		put(s, mode)
		page := do(s, t.Context(), "GET", "/metrics", "").Body.String()
		hint := do(s, t.Context(), "POST", "/v1/jobs", anyJob).Header().Get(hintHeader)
		return page + hint
	}
	for mode, want := range map[faultMode][]string{
		faultNone:        {"\nruleserver_cores 4\n", `stalled_joblets{priority="low"} 0`, "running=1, stalled=0", "cores=4"},
		faultLieIdle:     {"\nruleserver_cores 4\n", `jobs_running{priority="low"} 0`, "running=0, stalled=0"},
		faultLieCores:    {"\nruleserver_cores 4000\n", "cores=4000"},
		faultLieNaN:      {"\nruleserver_cores NaN\n", `stalled_joblets{priority="low"} NaN`, "running=NaN, stalled=NaN", "cores=NaN"},
		faultLieNegative: {"\nruleserver_cores -5\n", `stalled_joblets{priority="low"} -1`, "running=-3, stalled=-2"},
		faultLieHuge:     {"\nruleserver_cores 1e+308\n", `jobs_running{priority="low"} 1e+308`, "running=+Inf", "cores=1e+308"},
	} {
		told := tell(mode)
		for _, text := range want {
			assert.Contains(t, told, text, mode)
		}
	}

	completed := `ruleserver_jobs_completed_total{outcome="ok",priority="low"} `
	assert.NotContains(t, tell(faultNone), completed+"0\n")
	tell(faultLieResets)
	assert.Contains(t, tell(faultLieResets), completed+"1\n", "the job after the last report")

	dir := t.TempDir()
	for _, name := range []string{"1.csv", "shop.csv", "not a project.csv", "readme.txt"} {
		require.NoError(t, os.WriteFile(dir+"/"+name, []byte("id\n"), 0o600))
	}
	s = misbehaving(t, func(c *Config) { c.Feeds = os.DirFS(dir) })
	put(s, faultLieCached)
	assert.JSONEq(t, `{"projects":[{"id":1,"version":1,"bytes":1,"age_seconds":0},{"id":"shop","version":1,"bytes":1,"age_seconds":0}]}`,
		do(s, t.Context(), "GET", "/v1/cache/projects", "").Body.String())
}

// TestDistortLeavesTheTruth alone without a lie.
func TestDistortLeavesTheTruth(t *testing.T) {
	truth := figuresOf(executor.Load{Cores: 4, Busy: 3, Running: [2]int{1, 2}, Stalled: [2]int{3, 4}})
	f := newFaults()
	for _, mode := range []faultMode{faultNone, faultHang, faultSilent, faultFail, faultEmpty, faultFlap, faultSlow, faultLieCached} {
		f.set(mode, time.Now())
		assert.Equal(t, truth, f.distort(truth), mode)
	}
	f.set(faultLieNaN, time.Now())
	assert.True(t, math.IsNaN(f.distort(truth).allStalled()))
}

// TestWhoMaySetFaults: programs on this machine, and only with the flag.
func TestWhoMaySetFaults(t *testing.T) {
	s := misbehaving(t, nil)
	w := put(s, "sulk")
	assert.Equal(t, http.StatusBadRequest, w.Code)
	assert.Equal(t, "want one of [none hang silent fail empty flap slow lie-idle lie-cores lie-nan lie-negative lie-huge lie-resets lie-cached]\n", w.Body.String())
	assert.Equal(t, http.StatusForbidden, do(s, t.Context(), "PUT", "/v1/fault", "fail").Code, "another machine")
	assert.Equal(t, "slow\n", put(s, faultSlow).Body.String())
	assert.Equal(t, http.StatusNotFound, put(newServer(t, nil), faultFail).Code, "the flag is not set")
}
