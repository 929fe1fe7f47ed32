package metrics

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

func TestAttemptsAndRetries(t *testing.T) {
	m := newMetrics()
	want := map[string]float64{
		"pilotfish_retries_refused_total": 2, "pilotfish_replay_disabled_total": 1,
		`pilotfish_jobs_moved_total{reason="suspect"}`: 1, `pilotfish_jobs_moved_total{reason="late"}`: 2,
	}
	got := changes(t, m, func() {
		m.ReplayDisabled()
		m.JobMoved(pool.BySuspicion)
		m.JobMoved(pool.ByLateness)
		m.JobMoved(pool.ByLateness)
		m.RetryRefused()
		m.RetryRefused()
		for o := range pool.Outcome(pool.Outcomes) {
			for range int(o) + 1 {
				m.AttemptDone(Attempt{Upstream: "gone:1", Outcome: o, FirstByte: -1, LastByte: -1})
			}
			want[fmt.Sprintf("pilotfish_attempts_total{outcome=%q}", o)] = float64(o) + 1
		}
	})
	assert.Equal(t, want, got)
}

// hinted is an attempt whose upstream told everything.
func hinted(upstream string) Attempt {
	return Attempt{
		Upstream: upstream, Outcome: pool.Answered, Believed: selection.AssumedCached, Expected: 0.5,
		FirstByte: 3 * time.Second, LastByte: 10 * time.Second,
		Hint: &pool.Hint{Known: true, Waited: 2 * time.Second, Fetched: time.Second},
	}
}

func TestAttemptsAtAnUpstream(t *testing.T) {
	m := newMetrics()
	m.Joined([]string{"u:1", "u:2"})
	assert.Equal(t, map[string]float64{
		`pilotfish_attempts_total{outcome="answered"}`:                         1,
		`pilotfish_cache_finds_total{believed="assumed",found="miss"}`:         1,
		`pilotfish_upstream_attempts_total{outcome="answered",upstream="u:1"}`: 1,
		`pilotfish_upstream_first_byte_seconds_count{upstream="u:1"}`:          1,
		`pilotfish_upstream_first_byte_seconds_sum{upstream="u:1"}`:            3,
		`pilotfish_upstream_wait_seconds_count{upstream="u:1"}`:                1,
		`pilotfish_upstream_wait_seconds_sum{upstream="u:1"}`:                  2,
		`pilotfish_upstream_wait_expected_seconds_count{upstream="u:1"}`:       1,
		`pilotfish_upstream_wait_expected_seconds_sum{upstream="u:1"}`:         0.5,
		`pilotfish_upstream_fetch_seconds_count{upstream="u:1"}`:               1,
		`pilotfish_upstream_fetch_seconds_sum{upstream="u:1"}`:                 1,
		`pilotfish_upstream_execution_seconds_count{upstream="u:1"}`:           1,
		`pilotfish_upstream_execution_seconds_sum{upstream="u:1"}`:             8,
	}, changes(t, m, func() { m.AttemptDone(hinted("u:1")) }))

	told := hinted("u:2")
	told.Hint.Cached, told.Hint.Waited, told.Hint.Fetched = true, -1, -1
	assert.Equal(t, map[string]float64{
		`pilotfish_attempts_total{outcome="answered"}`:                         1,
		`pilotfish_cache_finds_total{believed="assumed",found="hit"}`:          1,
		`pilotfish_upstream_attempts_total{outcome="answered",upstream="u:2"}`: 1,
		`pilotfish_upstream_first_byte_seconds_count{upstream="u:2"}`:          1,
		`pilotfish_upstream_first_byte_seconds_sum{upstream="u:2"}`:            3,
	}, changes(t, m, func() { m.AttemptDone(told) }), "what is not told is not counted")

	m.Left([]string{"u:2"})
	for name := range series(t, m.registry) {
		assert.NotContains(t, name, "u:2")
	}
}

func TestPicked(t *testing.T) {
	m := newMetrics()
	got := changes(t, m, func() {
		m.Picked(selection.Cached, time.Second, false)
		m.Picked(selection.AssumedCached, time.Second, false)
		m.Picked(selection.AssumedCached, time.Second, false)
		m.Picked(selection.NotCached, time.Second, true)
	})
	assert.Equal(t, map[string]float64{
		`pilotfish_picks_total{cache="cached"}`:  1,
		`pilotfish_picks_total{cache="assumed"}`: 2,
		`pilotfish_picks_total{cache="none"}`:    1,
		"pilotfish_pick_seconds_count":           4,
		"pilotfish_pick_seconds_sum":             4,
		"pilotfish_panic_mode":                   1,
	}, got)
	got = changes(t, m, func() { m.Picked(selection.Cached, 0, false) })
	assert.Equal(t, -1.0, got["pilotfish_panic_mode"], "panic mode did not end")
}
