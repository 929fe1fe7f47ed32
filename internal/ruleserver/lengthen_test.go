package ruleserver

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestJobsBringTheirOwnCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := CostHeader + ": fetch=7s,output=100ms"
		server := Cost{Fetch: JobletCost{Base: time.Second}}
		for name, c := range map[string]struct {
			trust   bool
			options []string
			want    time.Duration
		}{
			"its own":              {true, []string{own}, 7100 * time.Millisecond},
			"none of its own":      {true, nil, time.Second},
			"nobody trusts it":     {false, []string{own}, time.Second},
			"nobody even reads it": {false, []string{CostHeader + ": nonsense"}, time.Second},
		} {
			s := newServer(t, Config{Cost: server, TrustCost: c.trust})
			begin := time.Now()
			w := do(s, t.Context(), "POST", "/v1/jobs", `{"project_id": 12345}`, c.options...)
			require.Equal(t, http.StatusOK, w.Code, name)
			assert.Equal(t, c.want, time.Since(begin), name)
			s.Close()
		}
	})
}

func TestCostOfItsOwnThatMakesNoSense(t *testing.T) {
	s := newServer(t, Config{TrustCost: true})
	w := do(s, t.Context(), "POST", "/v1/jobs", `{"project_id": 12345}`, CostHeader+": fetch=much")
	assert.Equal(t, http.StatusBadRequest, w.Code)
	assert.JSONEq(t, `{"type": "urn:ruleserver:malformed-cost", "status": 400,
		"detail": "header X-Cost: cost: fetch: want a duration such as 2s or 400ms, got \"much\""}`, w.Body.String())
}
