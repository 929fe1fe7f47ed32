package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAFileIsReplacedWhole(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "state")
	require.NoError(t, os.WriteFile(path, []byte("a longer text of before"), 0o644))
	require.NoError(t, Write(path, []byte("now")))
	text, err := Read(path, 3)
	require.NoError(t, err)
	assert.Equal(t, "now", string(text))
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())

	require.Error(t, Write(filepath.Join(path, "below"), nil), "a file is no folder")
	require.NoError(t, os.Mkdir(filepath.Join(folder, "taken"), 0o700))
	require.Error(t, Write(filepath.Join(folder, "taken"), nil), "a folder is not replaced")
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	assert.Len(t, left, 2, "what could not be put in its place is removed")
}

func TestTemporaryFilesOfAKilledProcessAreRemoved(t *testing.T) {
	folder := t.TempDir()
	create := func(name string, age time.Duration) {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		require.NoError(t, os.Chtimes(path, time.Time{}, time.Now().Add(-age)))
	}
	create("state.1"+temporary, time.Hour)
	create("state.2"+temporary, 0) // another process is writing it
	create("state.d"+temporary+".yaml", time.Hour)
	create("other.1"+temporary, time.Hour)
	require.NoError(t, Write(filepath.Join(folder, "state"), []byte("now")))
	list, err := os.ReadDir(folder)
	require.NoError(t, err)
	var left []string
	for _, e := range list {
		left = append(left, e.Name())
	}
	assert.Equal(t, []string{"other.1" + temporary, "state", "state.2" + temporary, "state.d" + temporary + ".yaml"}, left)
}

func TestReadRefuses(t *testing.T) {
	folder := t.TempDir()
	_, err := Read(folder, 1)
	assert.EqualError(t, err, folder+" is not a regular file")
	path := filepath.Join(folder, "token")
	for text, want := range map[string]string{
		"":                              " is empty",
		" \n":                           " is empty",
		"two words":                     " is not one word of plain ASCII",
		"gr\u00fc\u00df":                " is not one word of plain ASCII",
		strings.Repeat("x", maxToken+1): " is longer than 4096 bytes",
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err = Token(path)
		assert.EqualError(t, err, path+want)
	}
	require.NoError(t, os.WriteFile(path, []byte(" !secret~\n"), 0o600))
	token, err := Token(path)
	require.NoError(t, err)
	assert.Equal(t, "!secret~", token)
	token, err = Token("")
	require.NoError(t, err)
	assert.Empty(t, token)
}

// A file has changed if its identity, length or modification time has changed.
func TestFileChanges(t *testing.T) {
	folder := t.TempDir()
	then := time.Unix(1_800_000_000, 0)
	file := func(name, text string, at time.Time) os.FileInfo {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		require.NoError(t, os.Chtimes(path, at, at))
		info, err := os.Stat(path)
		require.NoError(t, err)
		return info
	}
	before := file("a", "one", then)
	is := func(now os.FileInfo) bool { return unchanged(before, now) }
	assert.True(t, is(file("a", "two", then)), "nothing shows that it changed")
	assert.False(t, is(file("b", "one", then)))
	assert.False(t, is(file("a", "longer", then)))
	assert.False(t, is(file("a", "one", then.Add(time.Second))))
}
