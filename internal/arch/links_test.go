package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A link in a document, and a figure, is to a file that is there.
func TestLinksOfDocuments(t *testing.T) {
	documents, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	documents = append(documents, "../../README.md", "../../CONTRIBUTING.md")
	links := 0
	for _, path := range documents {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`).FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			assert.FileExists(t, filepath.Join(filepath.Dir(path), m[1]), "a link of %s", path)
		}
	}
	assert.Greater(t, links, 10)
}

// The code of a document is that of a file, which a test runs.
func TestSnippetsOfDocuments(t *testing.T) {
	documents, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	shown := map[string]bool{}
	for _, path := range documents {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile("(?s)<!-- snippet: (\\S+) -->\n```\\w*\n(.*?)```\n").FindAllStringSubmatch(string(text), -1) {
			file, err := os.ReadFile(filepath.Join("../../docs", m[1]))
			require.NoError(t, err)
			assert.Equal(t, string(file), m[2], "%s shows docs/%s", path, m[1])
			shown[filepath.Base(m[1])] = true
		}
		for _, m := range regexp.MustCompile(`\]\(examples/([^)]+)\)`).FindAllStringSubmatch(string(text), -1) {
			shown[m[1]] = true
		}
	}
	files, err := os.ReadDir("../../docs/examples")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		assert.True(t, shown[f.Name()], "no document shows or links docs/examples/%s", f.Name())
	}
}
