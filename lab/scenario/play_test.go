package scenario

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.org/pilotfish/internal/cli"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// small is the small scenario: 5 runs with 2 seeds each.
func small(t *testing.T) *Scenario {
	t.Helper()
	s, err := Load("../../testdata/scenarios/small.yaml")
	require.NoError(t, err)
	s.Workload.Jobs = 800
	for i := range s.Runs {
		s.Runs[i].Workload.Jobs = 800
	}
	return s
}

// An interruption ends a scenario, and so does a fault.
func TestWhatEndsAScenario(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := 0
	_, err := small(t).Play(ctx, 1, func(string) {
		if ended++; ended == 3 {
			cancel(cli.ErrInterrupted)
		}
	})
	require.ErrorIs(t, err, cli.ErrInterrupted)
	assert.Equal(t, 3, ended)

	s := small(t)
	s.Runs[1].Policy = "none"
	_, err = s.Play(t.Context(), 2, func(string) {})
	require.ErrorContains(t, err, `run "dynamic", seed 1: unknown selection policy`)
}

// Every run is played with every seed, and its jobs count once.
func TestPlay(t *testing.T) {
	var ended []string
	results, err := small(t).Play(t.Context(), 2, func(what string) { ended = append(ended, what) })
	require.NoError(t, err)
	assert.Len(t, ended, 10)
	require.Len(t, results.trials, 5)
	for _, trials := range results.trials {
		require.Len(t, trials, 2)
		assert.NotEqual(t, trials[0].counts, trials[1].counts, "seeds differ")
		for _, trial := range trials {
			assert.Equal(t, 800.0, trial.counts["jobs"])
			assert.InDelta(t, 0.3, trial.counts["load"], 0.3)
		}
	}
}
