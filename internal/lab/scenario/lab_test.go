package scenario

import (
	"context"
	"path/filepath"
	"testing"
	"time"

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

// A trace passes at its speed, and what its jobs cost stays. The load is the share of all
// cores.
func TestATraceAtASpeed(t *testing.T) {
	dir := folder(t, map[string]string{
		"t.jsonl": `{"offset":0,"operators_s":4}` + "\n" + `{"offset":16,"operators_s":2}` + "\n",
		"s.yaml":  "trace: t.jsonl\nspeed: 4\nsample: 1s\nfleet: {upstreams: 2, cores: 4}\nruns: [{name: a, policy: random}]",
	})
	s, err := Load(filepath.Join(dir, "s.yaml"))
	require.NoError(t, err)
	runs, err := s.Choose(Choice{Scale: 1})
	require.NoError(t, err)
	assert.Equal(t, 4.0, runs[0].jobs.length)
	set, err := NewLab(s, runs).Play(t.Context(), 1, func(*Trial) {})
	require.NoError(t, err)
	c := set.Runs[0].Counts
	assert.Equal(t, 2.0, c.Jobs)
	assert.InDelta(t, 6.0/(6*2*4), c.Load, 1e-9, "both are over after six seconds")
	assert.Zero(t, c.Retries)
}

func TestScaleIsOfAllTimes(t *testing.T) {
	s, err := parseText("end: 600s\nwarm_up: 100s\nworkload: {jobs: 100, duration: 800}\nfleet: {growth: {at: 200s}}\nruns: [{name: a, policy: random}]")
	require.NoError(t, err)
	runs, err := s.Choose(Choice{Scale: 0.5})
	require.NoError(t, err)
	assert.Equal(t, []time.Duration{300 * time.Second, 50 * time.Second, 100 * time.Second}, []time.Duration{s.End, s.WarmUp, runs[0].Fleet.Growth.At})
	assert.Equal(t, 50, runs[0].jobs.count)
}
