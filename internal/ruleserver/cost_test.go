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

// TestCostOf: each kind of joblet takes its own time.
func TestCostOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, func(c *Config) { c.Settings.Cost = Cost{fetch: 1, shared: 20, operators: 300, output: 4000} })
		for _, lasts := range []time.Duration{4321, 4300, 0} { // the second job has other operators, the third is cached
			operators := `[]`
			if lasts < 4321 {
				operators = `[{"actions":[{"field":"id","action":"remove"}]}]`
			}
			begin := time.Now()
			do(s, t.Context(), "POST", "/v1/jobs", `{"project_id": 12345, "operators": `+operators+`}`)
			assert.Equal(t, lasts, time.Since(begin))
		}
	})
}

func TestJobsBringTheirOwnCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := costHeader + ": fetch=7s,output=100ms"
		server := Cost{fetch: time.Second}
		for name, c := range map[string]struct {
			trust   bool
			options []string
			want    time.Duration
		}{
			"its own":              {true, []string{own}, 7100 * time.Millisecond},
			"several cores":        {true, []string{own + ",operators=800ms,cores=4"}, 7225 * time.Millisecond},
			"none of its own":      {true, nil, time.Second},
			"nobody trusts it":     {false, []string{own}, time.Second},
			"nobody even reads it": {false, []string{costHeader + ": nonsense"}, time.Second},
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
