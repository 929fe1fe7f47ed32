package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/capacity"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
)

func TestTheFleetThatIsCounted(t *testing.T) {
	assert.Equal(t, capacity.Fleet{Upstreams: 3, Cores: 18}, fleetOf([]pool.State{
		{Cores: 8}, {Cores: 4}, {}, {Cores: 16, Drained: true}, {Cores: 16, Upstream: pool.Upstream{Draining: true}},
	}))
	assert.Equal(t, capacity.Fleet{Upstreams: 1}, fleetOf([]pool.State{{}}))
}

// What comes is what is done, and more while times rise or jobs are lost, unless cores
// are free.
func TestDemand(t *testing.T) {
	trend := quality.Trend{Jobs: 100, Span: 50, Slope: 0.1}
	for _, c := range []struct {
		states      []pool.State
		mode        quality.Mode
		lost        uint64 // of 120 jobs
		cores, jobs float64
	}{
		{[]pool.State{{Cores: 8, CoresBusy: 4, Rate: 16}, {Cores: 8, CoresBusy: 9, Rate: 8}}, quality.Flat, 0, 12, 16},
		{[]pool.State{{Cores: 8, CoresBusy: 4}, {Cores: 8, CoresBusy: -1}, {CoresBusy: 3}}, quality.Flat, 0, 4, 2},
		{[]pool.State{{Cores: 8, CoresBusy: 8, Rate: 16}}, quality.Growing, 0, 9.6, 19.2},
		{[]pool.State{{Cores: 8, CoresBusy: 4, Rate: 16}}, quality.Growing, 0, 4, 8},
		{[]pool.State{{Cores: 8, CoresBusy: 8, Rate: 16}}, quality.Losing, 24, 10, 20},
		{[]pool.State{{Cores: 8, CoresBusy: 8, Rate: 16}}, quality.Losing, 120, 8, 16},
		{nil, quality.Unknown, 0, 0, 2},
	} {
		cores, jobs := demand(c.states, quality.Status{Mode: c.mode, Trend: trend}, 120, c.lost)
		assert.InDelta(t, c.cores, cores, 1e-9)
		assert.InDelta(t, c.jobs, jobs, 1e-9)
	}
}

// The admin port tells what the fleet can do once it has seen jobs, and why not before.
func TestCapacityOnTheAdminPort(t *testing.T) {
	cfg, _ := fileConfig(t, "127.0.0.1:1")
	s, _ := logged(t, &cfg)
	s.balancer.Set([]pool.Upstream{{Address: "127.0.0.1:1"}})
	admin, err := s.admin(nil)
	require.NoError(t, err)
	ask := func() (status int, got map[string]any) {
		r := httptest.NewRequest(http.MethodGet, "/api/capacity", nil)
		r.Host = "localhost"
		w := httptest.NewRecorder()
		admin.ServeHTTP(w, r)
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
		return w.Code, got
	}
	status, got := ask()
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.Equal(t, capacity.ErrUnknown.Error(), got["error"])

	now := time.Now()
	s.balancer.Report("127.0.0.1:1", pool.Report{At: now, Cores: 8, CoresBusy: 6, Completed: -1})
	for i := range 120 {
		s.console.load.Note(now.Add(time.Duration(i)*time.Second), 6, 3)
	}
	status, got = ask()
	require.Equal(t, http.StatusOK, status)
	assert.Equal(t, 0.75, got["now"].(map[string]any)["full"])
	assert.Equal(t, 4.0, got["jobs_per_second"], "3 a second take 6 of 8 cores")
	assert.Equal(t, 2.0, got["flat"].(map[string]any)["upstreams"], "6 cores and 2.33 times their root are 11.7")
	assert.Equal(t, 3.0, got["bound_seconds"])
}
