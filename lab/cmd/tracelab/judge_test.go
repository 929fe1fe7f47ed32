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
	code, out, stderr := tracelab("judge", "--root", "/nowhere")
	assert.Equal(t, 1, code)
	assert.Contains(t, stderr, "/nowhere/pkg/selection: there is no source: is /nowhere the repository?")
	assert.Empty(t, out)
}

// The list of judgings grows by what is new.
func TestJudgingsAreAppended(t *testing.T) {
	dir := t.TempDir()
	f := judge.Families()[0]
	f.Jobs, f.Upstreams, f.Cores = judge.Range{Low: 100, High: 200}, judge.Range{Low: 2, High: 3}, judge.Range{Low: 2, High: 4}
	j, err := judge.Judge(t.Context(), "12", []judge.Family{f}, func(int, int) {})
	require.NoError(t, err)
	require.NoError(t, save(dir, j))
	require.NoError(t, save(dir, j))
	j.Hash = "34"
	require.NoError(t, save(dir, j))
	list := read(t, filepath.Join(dir, "judgings.txt"))
	assert.Equal(t, 2, strings.Count(list, "\n"))
	assert.Regexp(t, `^12: 1 families; .*\n34: 1 families; `, list)
	assert.Contains(t, read(t, filepath.Join(dir, "judge.txt")), "sources: 34 (")
}
