package sources

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Sources and files change the hash; tests and other folders do not. A folder without sources is an error.
func TestHashIsOfTheSources(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) (string, error) {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return Hash(root, "pkg/a", "b.yaml")
	}
	_, err := write("b.yaml", "x")
	require.ErrorContains(t, err, "is "+root+" the repository?")
	_, err = write("pkg/a/a_test.go", "a")
	require.EqualError(t, err, root+"/pkg/a: there are no Go sources: is "+root+" the repository?")
	first, err := write("pkg/a/a.go", "a")
	require.NoError(t, err)
	require.Len(t, first, 16)
	commented, err := write("pkg/a/a.go", "// Why.\n\na // how")
	require.NoError(t, err)
	require.Equal(t, first, commented, "a comment")
	_, err = write("pkg/a/a.go", "a")
	require.NoError(t, err)
	for name, same := range map[string]bool{"pkg/a/a_test.go": true, "pkg/b/a.go": true, "pkg/a/a.go": false, "pkg/a/b.go": false, "b.yaml": false} {
		old, err := os.ReadFile(filepath.Join(root, name))
		hash, fault := write(name, "other")
		require.NoError(t, fault)
		assert.Equal(t, same, hash == first, name)
		if err != nil {
			require.NoError(t, os.Remove(filepath.Join(root, name)))
			continue
		}
		hash, err = write(name, string(old))
		require.NoError(t, err)
		assert.Equal(t, first, hash, name)
	}
}

// The listed folders and files exist.
func TestWhatIsListedIsThere(t *testing.T) {
	for _, paths := range [][]string{Judged(), Simulated(), Prompts()} {
		_, err := Hash("../..", paths...)
		require.NoError(t, err)
	}
}

// The tests that make quick leaves out exist.
func TestSlowTestsAreThere(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	require.NoError(t, err)
	list := regexp.MustCompile(`(?m)^SLOW := \^Test\((.*)\)`).FindSubmatch(makefile)
	require.NotNil(t, list)
	var sources []byte
	for _, pattern := range []string{"../*/*_test.go", "../cmd/*/*_test.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			sources = append(sources, text...)
		}
	}
	for name := range strings.SplitSeq(string(list[1]), "|") {
		assert.Contains(t, string(sources), "\nfunc Test"+name+"(t *testing.T)")
	}
}
