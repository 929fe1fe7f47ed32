package scenario

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// All that is not as usual is told.
func TestDescribe(t *testing.T) {
	s, err := parseText(`
workload: {jobs: 1000, duration: 600, pattern: steady}
fleet:
  upstreams: 8
  cores: 4
  backlog: 20
  parallel: 2
  contention: 0.5
  unlike: [{upstreams: 2, speed: 3}]
  faults: [{kind: slow, upstreams: 1, factor: 5, at: 10s, for: 20s}]
  growth: {upstreams: 2, at: 1m}
  preemption: {upstreams: 3, early: 0.25}
sidecars: {count: 40, reserve: 0.5, projects: {limit: 3, lag: 5s, fair: true}, lag: 2s, together: true, hints: true, freeze: {at: 60s, for: 30s}, connect_timeout: never}
submitters: {patience: 3s, again: 2}
runs:
  - {name: a, policy: expected, expected: {wait_price: 2, off: [` + parts()[0] + `]}}
  - {name: b, policy: bounded-hash, bound: 2, overload: dagor, stalled: 50, dagor: {ignore_wait: true}}
`)
	require.NoError(t, err)
	runs, err := s.Choose(Choice{Scale: 1})
	require.NoError(t, err)
	assert.Equal(t, []string{
		"1,000 jobs generated, over 10m", "8 upstreams of 4 cores", "64GiB cache each", "stopped at 5m", "backlog 20", "joblets on up to 2 cores", "contention 0.5",
		"2 3 times as fast", "1 slow (5) from 10s for 20s", "2 that join from 1m0s on", "3 pre-emptible, 25 % early",
		"40 sidecars", "reports every 5s", "0.5 of the share of high jobs reserved", "3 jobs of a project in flight", "lag 5s", "projects take turns",
		"2s old", "the same for all", "load hints", "none from 1m for 30s",
		"without " + parts()[0], "wait_price 2", "high jobs sent again after 3s, 2 times", "3 attempts", "connect timeout never",
	}, runs[0].describe(5*time.Minute))
	assert.Subset(t, runs[1].describe(0), []string{"limit 50 stalled", "DAGOR by stalled joblets", "bound 2"})
	assert.NotContains(t, runs[1].describe(0), "stopped at 5m")
}
