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

// A link in a document, and a figure, is to a file that is there. The code of a document is
// that of a file, which a test runs.
func TestDocuments(t *testing.T) {
	documents, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	links, shown := 0, map[string]bool{}
	for _, path := range append(documents, "../../README.md", "../../CONTRIBUTING.md") {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`).FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			assert.FileExists(t, filepath.Join(filepath.Dir(path), m[1]), "a link of %s", path)
			shown[m[1]] = true
		}
		for _, m := range regexp.MustCompile("(?s)<!-- snippet: (\\S+) -->\n```\\w*\n(.*?)```\n").FindAllStringSubmatch(string(text), -1) {
			file, err := os.ReadFile(filepath.Join("../../docs", m[1]))
			require.NoError(t, err)
			assert.Equal(t, string(file), m[2], "%s shows docs/%s", path, m[1])
			shown[m[1]] = true
		}
	}
	assert.Greater(t, links, 10)
	files, err := os.ReadDir("../../docs/examples")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		assert.True(t, shown["examples/"+f.Name()], "no document shows or links docs/examples/%s", f.Name())
	}
}
