package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// In the packages that are read first, the files have no cycles: each uses only names of the files below it.
func TestFilesWithoutCycles(t *testing.T) {
	for _, folder := range []string{"internal/pool", "internal/proxy", "cmd/pilotfish"} {
		n, err := upward(filepath.Join("..", "..", folder))
		require.NoError(t, err)
		assert.Zero(t, n, "%s: go run ./tools/size counts the arrows", folder)
	}
}

func TestUpwardArrows(t *testing.T) {
	arrow := func(from, to string) [2]string { return [2]string{from, to} }
	chain := map[[2]string]bool{arrow("a", "b"): true, arrow("b", "c"): true, arrow("a", "c"): true}
	assert.Zero(t, fewest(chain))
	chain[arrow("c", "a")] = true
	assert.Equal(t, 1, fewest(chain), "a cycle")
}
