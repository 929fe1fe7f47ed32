//go:build judged

package judge

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The committed table is of the present sources: after a change of them, make judge.
func TestTheTableIsOfTheseSources(t *testing.T) {
	hash, err := Hash("../..")
	require.NoError(t, err)
	table, err := os.ReadFile("../results/judge.txt")
	require.NoError(t, err)
	assert.Contains(t, string(table), "sources: "+hash+" (", "lab/results/judge.txt is of other sources: run make judge")
}
