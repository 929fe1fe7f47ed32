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
	want := map[string]float64{"pilotfish_retries_refused_total": 2, "pilotfish_replay_disabled_total": 1}
	got := changes(t, m, func() {
		m.ReplayDisabled()
		m.RetryRefused()
		m.RetryRefused()
		for o := range pool.Outcome(pool.Outcomes) {
			for range int(o) + 1 {
				m.AttemptDone(o)
			}
			want[fmt.Sprintf("pilotfish_attempts_total{outcome=%q}", o)] = float64(o) + 1
		}
	})
	assert.Equal(t, want, got)
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
