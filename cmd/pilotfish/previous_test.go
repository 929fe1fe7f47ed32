package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A start is unplanned only if the process before it was killed. Without systemd that is unknown.
func TestPlannedStarts(t *testing.T) {
	dir := t.TempDir()
	for i, c := range []struct{ ends, planned bool }{{true, true}, {false, true}, {true, false}, {true, true}} {
		var m marker
		planned, err := m.begin(dir + ":/elsewhere")
		require.NoError(t, err)
		assert.Equal(t, c.planned, *planned, "start %d", i)
		assert.FileExists(t, filepath.Join(dir, "running"))
		if c.ends {
			require.NoError(t, m.end())
		}
	}
	var m marker
	planned, err := m.begin("")
	assert.NoError(t, err)
	assert.Nil(t, planned)
	assert.NoError(t, m.end())
	_, err = m.begin(filepath.Join(dir, "missing"))
	assert.ErrorIs(t, err, os.ErrNotExist)
}
