package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestJudgeRefuses(t *testing.T) {
	code, out, stderr := tracelab("judge", "--root", "/nowhere")
	assert.Equal(t, 1, code)
	assert.Contains(t, stderr, "is /nowhere the repository?")
	assert.Empty(t, out)
	for flag, want := range map[string]string{"--family=no": "--family: unknown: [no]", "--draw=x": "--list cannot be combined with"} {
		_, _, stderr := tracelab("judge", "--root", "../../..", "--list", "no", flag)
		assert.Contains(t, stderr, want)
	}
}

func TestJudgingsAreAppended(t *testing.T) {
	list := filepath.Join(t.TempDir(), "judgings.txt")
	require.NoError(t, add(list, "12: 1 families\n"))
	require.NoError(t, add(list, "34: 1 families\n"))
	assert.Equal(t, "12: 1 families\n34: 1 families\n", read(t, list))
	require.ErrorContains(t, add(filepath.Dir(list), ""), "is a directory")
}

// A result is computed once for the same sources and scenario.
func TestResultsAreKept(t *testing.T) {
	scenario := write(t, "s.yaml", "workload: {jobs: 20, duration: 60, pattern: steady}\nruns: [{name: a, policy: random}]\n")
	result := filepath.Join(t.TempDir(), "result.txt")
	play := func() string {
		code, out, stderr := tracelab("simulate", "--root", "../../..", "--result", result, scenario)
		require.Zero(t, code, stderr)
		assert.Empty(t, out)
		return stderr
	}
	assert.Contains(t, play(), "1/1 a, seed 1")
	first := read(t, result)
	assert.Regexp(t, "^sources: [0-9a-f]{16}\n\ns\n", first)
	assert.Equal(t, result+" is up to date\n", play())
	require.NoError(t, os.WriteFile(scenario, []byte("workload: {jobs: 30, duration: 60, pattern: steady}\nruns: [{name: a, policy: random}]\n"), 0o600))
	assert.Contains(t, play(), "1/1 a, seed 1")
	assert.NotEqual(t, first, read(t, result))
}
