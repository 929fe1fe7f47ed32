//go:build judged

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/lab/sources"
)

// The committed results must be those of the current sources: run make results after a change.
func TestResultsAreOfTheseSources(t *testing.T) {
	const root = "../../.."
	scenarios, err := filepath.Glob(root + "/testdata/scenarios/*.yaml")
	require.NoError(t, err)
	check := func(name, file string, paths []string) {
		want, err := stated(root, file, paths)
		require.NoError(t, err)
		text, err := os.ReadFile("../../results/" + name + ".txt")
		require.NoError(t, err)
		assert.True(t, strings.HasPrefix(string(text), want), "lab/results/%s.txt is of other sources: run make results", name)
	}
	for _, file := range scenarios {
		if name := strings.TrimSuffix(filepath.Base(file), ".yaml"); name != "small" {
			check(name, file, sources.Simulated())
		}
	}
	check("prompts", root+"/testdata/traces/mooncake-conversation.jsonl.gz", sources.Prompts())
	check("chats", "", sources.Prompts())
}
