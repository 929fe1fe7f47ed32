package ruleserver

import (
	"net/http"
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

// A fault mode changes jobs and reports until it is replaced. Modes need the flag.
func TestFaultModes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, func(c *Config) { c.Settings.Faults, c.Settings.Cost = true, Cost{output: time.Second} })
		for _, c := range []struct {
			mode                     faultMode
			status, metrics, listing int
			cores                    string // in reports
			took                     time.Duration
		}{
			{faultNone, 200, 200, 200, "4", time.Second},
			{faultFail, 500, 200, 200, "4", 0},
			{faultSilent, 200, 404, 404, "", time.Second},
			{faultLieCores, 200, 200, 200, "4000", time.Second},
			{faultNone, 200, 200, 200, "4", time.Second},
		} {
			require.NoError(t, s.Warm("12345")) // without the response of the job before
			require.Equal(t, http.StatusOK, do(s, t.Context(), "PUT", "/v1/fault", string(c.mode)+"\n").Code)
			begin := time.Now()
			job := do(s, t.Context(), "POST", "/v1/jobs", anyJob)
			assert.Equal(t, []any{c.status, c.took}, []any{job.Code, time.Since(begin)}, c.mode)
			metrics := do(s, t.Context(), "GET", "/metrics", "")
			assert.Equal(t, c.metrics, metrics.Code, c.mode)
			assert.Equal(t, c.listing, do(s, t.Context(), "GET", "/v1/cache/projects", "").Code, c.mode)
			switch hint := job.Header().Get(hintHeader); c.mode {
			case faultSilent:
				assert.Empty(t, hint)
			case faultNone, faultLieCores:
				assert.Contains(t, hint, "cores="+c.cores+",")
				assert.Contains(t, metrics.Body.String(), "\nruleserver_cores "+c.cores+"\n", c.mode)
			}
		}
		w := do(s, t.Context(), "PUT", "/v1/fault", "sulk\n")
		assert.Equal(t, http.StatusBadRequest, w.Code)
		assert.Equal(t, "want one of [none fail silent lie-cores]\n", w.Body.String())
		assert.Equal(t, http.StatusNotFound, do(newServer(t, nil), t.Context(), "PUT", "/v1/fault", "fail\n").Code, "the flag is not set")
	})
}
