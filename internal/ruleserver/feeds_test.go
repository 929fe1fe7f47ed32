package ruleserver

import (
	"io/fs"
	"os"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFeedsStayInside: neither a name nor a link leads out of the directory.
func TestFeedsStayInside(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/secret.csv", []byte("id\n1\n"), 0o600))
	require.NoError(t, os.Mkdir(dir+"/feeds", 0o700))
	require.NoError(t, os.Symlink("../secret.csv", dir+"/feeds/link.csv"))
	root, err := os.OpenRoot(dir + "/feeds")
	require.NoError(t, err)
	defer root.Close()
	f := feeds{files: root.FS(), maxBytes: 100}
	for _, project := range []string{"../secret", "link", "", ".", "a/b", "a\x00b"} {
		_, err := f.version(project)
		assert.Error(t, err, "%q", project)
	}
}

// changing is a file system whose file changes as soon as it is opened.
type changing struct{ fstest.MapFS }

func (c changing) Open(name string) (fs.File, error) {
	file, err := c.MapFS.Open(name)
	c.MapFS[name] = &fstest.MapFile{Data: c.MapFS[name].Data, ModTime: c.MapFS[name].ModTime.Add(time.Second)}
	return file, err
}

func TestReadOfAChangingFeed(t *testing.T) {
	files := changing{fstest.MapFS{"1.csv": {Data: []byte("id\n1\n")}}}
	f := feeds{files: files, maxBytes: 100}
	version, err := f.version("1")
	require.NoError(t, err)
	_, err = f.read("1", version)
	require.ErrorIs(t, err, errFeedChanged)
	p := problemOf(err)
	assert.Equal(t, 503, p.Status)
	assert.True(t, p.retry)
}
