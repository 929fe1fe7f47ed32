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

// Links and figures in documents refer to existing files and headings. A document's code
// equals that of a file that a test runs.
func TestDocuments(t *testing.T) {
	documents, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	tutorials, err := filepath.Glob("../../docs/tutorials/*.md")
	require.NoError(t, err)
	documents = append(documents, tutorials...)
	links, shown := 0, map[string]bool{}
	for _, path := range append(documents, "../../README.md", "../../CONTRIBUTING.md", "../../SECURITY.md", "../../CHANGELOG.md", "../../deploy/README.md") {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`\]\(([^)#]*)#?([^)]*)\)`).FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			target := path
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(path), m[1])
			}
			_, err := os.Stat(target)
			assert.NoError(t, err, "a link of %s", path)
			if m[2] != "" {
				assert.Contains(t, anchors(t, target), m[2], "a link of %s to %s", path, target)
			}
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

// anchors returns those of a document's headings: in lower case, without punctuation, with hyphens for spaces.
func anchors(t *testing.T, document string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(string(text), -1) {
		plain := regexp.MustCompile(`[^\w -]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		all = append(all, strings.ReplaceAll(plain, " ", "-"))
	}
	return all
}

// The log messages that docs/troubleshooting.md explains are in the sources.
func TestExplainedMessagesAreLogged(t *testing.T) {
	text, err := os.ReadFile("../../docs/troubleshooting.md")
	require.NoError(t, err)
	_, rows, _ := strings.Cut(string(text), "## By log line")
	messages := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(rows, -1)
	require.Greater(t, len(messages), 10)
	var sources strings.Builder
	for _, pattern := range []string{"../../cmd/pilotfish/*.go", "../*/*.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				source, err := os.ReadFile(file)
				require.NoError(t, err)
				sources.Write(source)
			}
		}
	}
	for _, m := range messages {
		_, meaning, _ := strings.Cut(m[1], ": ") // for a mode, whose name is inserted
		if !strings.Contains(sources.String(), `"`+m[1]+`"`) && !strings.Contains(sources.String(), `return "`+meaning+`"`) {
			t.Errorf("nothing logs %q", m[1])
		}
	}
}
