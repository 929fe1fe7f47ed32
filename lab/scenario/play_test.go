package scenario

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.org/pilotfish/internal/cli"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// small is a lab for the small scenario: 5 runs with 2 seeds each.
func small(t *testing.T) *Lab {
	t.Helper()
	s, err := Load("../testdata/scenarios/small.yaml")
	require.NoError(t, err)
	l, err := NewLab(Choice{Scale: 0.2}, s)
	require.NoError(t, err)
	return l
}

// An interruption ends the lab, and so does a fault, whatever was done before.
func TestWhatEndsALab(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := 0
	_, err := small(t).Play(ctx, 1, func(*Trial) {
		if ended++; ended == 3 {
			cancel(cli.ErrInterrupted)
		}
	})
	require.ErrorIs(t, err, cli.ErrInterrupted)
	assert.Equal(t, 3, ended)

	dir := folder(t, map[string]string{
		"gone.jsonl": `{"offset":0,"operators_s":1}`, "s.yaml": "trace: [gone.jsonl]\nruns: [{name: a, policy: random}]",
	})
	s, err := Load(filepath.Join(dir, "s.yaml"))
	require.NoError(t, err)
	l, err := NewLab(Choice{Scale: 1}, s)
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(dir, "gone.jsonl")))
	_, err = l.Play(t.Context(), 2, func(*Trial) {})
	require.ErrorContains(t, err, `run "a", seed 1: open `+dir)
}

// Every trial is played, and its jobs count once.
func TestPlay(t *testing.T) {
	l := small(t)
	ended := 0
	set, err := l.Play(t.Context(), 2, func(*Trial) { ended++ })
	require.NoError(t, err)
	assert.Equal(t, 10, ended)
	assert.Equal(t, 10, l.Trials)
	require.Len(t, set.Runs, 5)
	for _, run := range set.Runs {
		require.Len(t, run.Trials, 2)
		assert.Equal(t, uint64(2), run.Trials[1].Seed)
		for _, trial := range run.Trials {
			assert.Equal(t, 800.0, trial.Counts.Jobs, run.Name)
		}
	}
}

// A trace is played as it is. The load is the share of all cores.
func TestATrace(t *testing.T) {
	dir := folder(t, map[string]string{
		"t.jsonl": `{"offset":0,"operators_s":4}` + "\n" + `{"offset":16,"operators_s":2}` + "\n",
		"s.yaml":  "trace: [t.jsonl]\nfleet: {upstreams: 2, cores: 4}\nruns: [{name: a, policy: random}]",
	})
	s, err := Load(filepath.Join(dir, "s.yaml"))
	require.NoError(t, err)
	l, err := NewLab(Choice{Scale: 1}, s)
	require.NoError(t, err)
	assert.Equal(t, 16.0, s.jobs.length)
	set, err := l.Play(t.Context(), 1, func(*Trial) {})
	require.NoError(t, err)
	c := set.Runs[0].Counts
	assert.Equal(t, 2.0, c.Jobs)
	assert.InDelta(t, 6.0/(18*2*4), c.Load, 1e-9, "both are over after eighteen seconds")
	assert.Zero(t, c.Retries)
}

func TestScaleIsOfAllTimes(t *testing.T) {
	s, err := parseText("end: 600s\nwarm_up: 100s\nworkload: {jobs: 100, duration: 800}\nfleet: {restart: {at: 200s}}\nruns: [{name: a, policy: random}]")
	require.NoError(t, err)
	_, err = NewLab(Choice{Scale: 0.5}, s)
	require.NoError(t, err)
	assert.Equal(t, []time.Duration{300 * time.Second, 50 * time.Second, 100 * time.Second}, []time.Duration{s.End, s.WarmUp, s.Runs[0].Fleet.Restart.At})
	assert.Equal(t, 50, s.jobs.count)
}

// folder writes files into a folder of the test's own.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}
