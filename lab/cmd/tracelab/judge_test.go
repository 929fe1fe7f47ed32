package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/lab/judge"
)

func TestJudgeRefuses(t *testing.T) {
	for want, args := range map[string][]string{
		"/nowhere/pkg/selection: there is no source: is /nowhere the repository?": {"--root", "/nowhere"},
		"--settings 0 and --seeds 2 must be at least 1":                           {"--root", "../../..", "--settings", "0"},
		"--jobs -1 is negative": {"--root", "../../..", "--jobs=-1"},
	} {
		code, out, stderr := tracelab(append([]string{"judge"}, args...)...)
		assert.Equal(t, 1, code, want)
		assert.Contains(t, stderr, want)
		assert.Empty(t, out)
	}
}

// The list of judgings grows by what is new.
func TestJudgingsAreAppended(t *testing.T) {
	dir := t.TempDir()
	j := judge.Judgement{Hash: "12", Verdicts: []judge.Verdict{{Ratios: make([]float64, 9)}}}
	require.NoError(t, save(dir, &j))
	require.NoError(t, save(dir, &j))
	j.Hash = "34"
	require.NoError(t, save(dir, &j))
	list := read(t, filepath.Join(dir, "judgings.txt"))
	assert.Equal(t, 2, strings.Count(list, "\n"))
	assert.Regexp(t, `^12: 1 families; .*\n34: 1 families; `, list)
	assert.Equal(t, "34", judge.HashOf(read(t, filepath.Join(dir, "judge.txt"))))
}
