package main

import (
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

func TestTheListOfJudgingsGrows(t *testing.T) {
	list := filepath.Join(t.TempDir(), "judgings.txt")
	require.NoError(t, add(list, "12: 1 families\n"))
	require.NoError(t, add(list, "34: 1 families\n"))
	assert.Equal(t, "12: 1 families\n34: 1 families\n", read(t, list))
	require.ErrorContains(t, add(filepath.Dir(list), ""), "is a directory")
}
