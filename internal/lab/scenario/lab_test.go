package scenario

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/lab/results"
	"example.org/pilotfish/internal/lab/stats"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// small is a lab for the small scenario: 5 runs with 2 seeds each.
func small(t *testing.T) *Lab {
	t.Helper()
	s, err := Load("../../../testdata/scenarios/small.yaml")
	require.NoError(t, err)
	runs, err := s.Choose(Choice{Scale: 0.2})
	require.NoError(t, err)
	return NewLab(s, runs)
}

// An interrupted lab returns the trials that are done: all runs of the first
// seed come before the second.
func TestInterrupted(t *testing.T) {
	l := small(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := 0
	set, err := l.Play(ctx, 1, func(*Trial) {
		if ended++; ended == 3 {
			cancel()
		}
	})
	require.ErrorIs(t, err, cli.ErrInterrupted)
	assert.EqualError(t, err, "interrupted: these are the 3 of 10 runs that were done")
	require.Len(t, set.Runs, 3)
	for i, name := range []string{"baseline", "dynamic", "dagor"} {
		assert.Equal(t, name, set.Runs[i].Name)
		assert.Len(t, set.Runs[i].Trials, 1)
	}

	set, err = small(t).Play(ctx, 1, func(*Trial) {})
	require.ErrorIs(t, err, cli.ErrInterrupted)
	assert.EqualError(t, err, "interrupted before any run was done")
	assert.Empty(t, set.Runs)
}

// A fault ends the lab, whatever was done before.
func TestFaultyRun(t *testing.T) {
	l := small(t)
	l.trials[3].run.jobs.trace = "absent.jsonl"
	set, err := l.Play(t.Context(), 2, func(*Trial) {})
	require.ErrorContains(t, err, `run "expected": open absent.jsonl`)
	assert.NotErrorIs(t, err, cli.ErrInterrupted)
	assert.Empty(t, set.Runs)
}

// Every trial is played, and its jobs count once.
func TestPlay(t *testing.T) {
	l := small(t)
	ended := 0
	set, err := l.Play(t.Context(), 2, func(*Trial) { ended++ })
	require.NoError(t, err)
	assert.Equal(t, 10, ended)
	assert.Equal(t, 10, l.Trials())
	assert.Equal(t, 1.0, l.Done())
	require.Len(t, set.Runs, 5)
	for _, run := range set.Runs {
		require.Len(t, run.Trials, 2)
		assert.Equal(t, uint64(2), run.Trials[1].Seed)
		for _, trial := range run.Trials {
			assert.Equal(t, 800.0, trial.Counts.Jobs, run.Name)
		}
	}
}

// What the crowd's project got is told apart from what the others did, and together
// they are all jobs. With a limit on it, the others wait less.
func TestACrowdApart(t *testing.T) {
	s, err := Load("../../../testdata/scenarios/flood.yaml")
	require.NoError(t, err)
	runs, err := s.Choose(Choice{Only: []string{"limit 8, lag 10 s"}, Seeds: 2, Scale: 0.3})
	require.NoError(t, err)
	set, err := NewLab(s, runs).Play(t.Context(), 2, func(*Trial) {})
	require.NoError(t, err)
	wait := map[string]float64{}
	for _, run := range set.Runs {
		counted := map[string]int64{}
		for _, rows := range [][]stats.Row{run.Rows, run.Apart} {
			for _, row := range rows {
				if row.Quantity != stats.Wait {
					continue
				}
				counted[row.Priority] = int64(row.Count)
				if row.Priority == results.Others {
					wait[run.Name] = row.Mean
				}
			}
		}
		assert.Len(t, counted, 4)
		assert.Equal(t, counted["high"]+counted["low"], counted[results.Crowd]+counted[results.Others])
		assert.Positive(t, counted[results.Crowd])
	}
	assert.Less(t, wait["limit 8, lag 10 s"], wait["no bounds"]/2)
	assert.Positive(t, set.Run("limit 8, lag 10 s").Counts.Shed)
}
