package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Several files are shown together; each figure can have a file of its own.
func TestReport(t *testing.T) {
	dir := t.TempDir()
	saved := filepath.Join(dir, "small.json")
	code, _, stderr := tracelab("simulate", small, "--seeds", "1", "--scale", "0.1", "--json", saved)
	require.Zero(t, code, stderr)
	code, out, stderr := tracelab("report", saved, saved, "--figures", dir)
	require.Zero(t, code, stderr)
	assert.Contains(t, out, "small, small\n")
	assert.Contains(t, out, "small: dynamic")
	assert.FileExists(t, filepath.Join(dir, "small-small-wait-low-jobs-figure-9.svg"))

	code, out, stderr = tracelab("simulate", small, "--figures", saved)
	assert.Equal(t, 1, code)
	assert.Contains(t, stderr, "small.json is not a directory")
	assert.Empty(t, out)
}

func TestReportRefuses(t *testing.T) {
	for want, path := range map[string]string{
		"r.json: not the results of tracelab simulate: EOF": write(t, "r.json", ""),
		"no such file or directory":                         "absent.json",
	} {
		code, out, stderr := tracelab("report", path)
		assert.Equal(t, 1, code, want)
		assert.Contains(t, stderr, want)
		assert.Empty(t, out)
	}
}
