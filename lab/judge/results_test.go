//go:build judged

package judge

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/lab/sources"
)

// The committed table must be that of the current sources: run make judge after a change.
func TestTheTableIsOfTheseSources(t *testing.T) {
	hash, err := sources.Hash("../..", sources.Judged()...)
	require.NoError(t, err)
	for _, name := range []string{"judge.txt", "equal.txt", "drawn.txt"} {
		table, err := os.ReadFile("../results/" + name)
		require.NoError(t, err)
		assert.Contains(t, string(table), "sources: "+hash+" (", "lab/results/%s is of other sources: run make judge", name)
	}
}

// The list has one line for each judgement of other sources, and only grows.
func TestJudgingsAreComplete(t *testing.T) {
	list, err := os.ReadFile("../results/judgings.txt")
	require.NoError(t, err)
	lines := strings.SplitAfter(string(list), "\n")
	const old = 12
	assert.Equal(t, "3dbac8a399b73c09", fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(lines[:old], ""))))[:16], "a line is gone")
	table, err := os.ReadFile("../results/judge.txt")
	require.NoError(t, err)
	hash, _, _ := strings.Cut(lines[len(lines)-2], ":")
	assert.Contains(t, string(table), "sources: "+hash+" (", "the last line is that of the table")
	claims, err := os.ReadFile("../../docs/claims.md")
	require.NoError(t, err)
	assert.Contains(t, string(claims), strings.TrimSpace(Medians(string(list))), "claims quote the medians of the list")
}
