package discovery

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func fileOf(t *testing.T, path string) *Discovery {
	t.Helper()
	d, err := New(Config{File: &FileConfig{Path: path}}, seeded())
	require.NoError(t, err)
	return d
}

// edits runs a Discovery of a file for two minutes, while the file
// is changed at the given seconds.
func edits(t *testing.T, first string, later map[int]func(path string)) (all []heard, d *Discovery) {
	path := filepath.Join(t.TempDir(), "upstreams")
	require.NoError(t, os.WriteFile(path, []byte(first), 0o600))
	bubble(t, func(t *testing.T) {
		d = fileOf(t, path)
		for second, edit := range later {
			time.AfterFunc(time.Duration(second)*time.Second, func() { edit(path) })
		}
		all = follow(t, d, 2*time.Minute)
	})
	return all, d
}

func write(t *testing.T, text string) func(string) {
	return func(path string) { assert.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
}

func TestFileFollowsEdits(t *testing.T) {
	all, d := edits(t, "b:1\na:1\n", map[int]func(string){
		10: write(t, "a:1\nc:1\nb:1"),
		30: func(path string) { // renamed over
			write(t, `[{"address":"a:1"},{"address":"c:1"}]`)(path + ".new")
			assert.NoError(t, os.Rename(path+".new", path))
		},
		60: func(path string) { // the same length and time
			info, err := os.Stat(path)
			assert.NoError(t, err)
			write(t, `[{"address":"a:1"},{"address":"d:1"}]`)(path)
			assert.NoError(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
		},
	})
	assert.Equal(t, "a b | a b c | a c | a d", sets(all))
	assert.Zero(t, all[0].after)
	assert.Less(t, all[1].after, 16*time.Second)
	assert.NoError(t, d.Status().Err)
	assert.EqualValues(t, 4, d.Status().Applied)
}

func TestFileKeepsTheSetWhileTheFileIsBad(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(path string)
		err  string
	}{
		"bad line": {write(t, "a:1\nb:1\nb:x\n"), "read upstreams: PATH: line 3: address \"b:x\": want a port from 1 to 65535"},
		"bad JSON": {write(t, "[\n{]"), "read upstreams: PATH: line 2: invalid character ']' looking for beginning of object key string"},
		"gone":     {func(path string) { assert.NoError(t, os.Remove(path)) }, "read upstreams: stat PATH: no such file or directory"},
		"huge":     {func(path string) { assert.NoError(t, os.Truncate(path, maxFile+1)) }, "read upstreams: PATH is longer than 4194304 bytes"},
		"a pipe": {func(path string) {
			assert.NoError(t, os.Remove(path))
			assert.NoError(t, syscall.Mkfifo(path, 0o600))
		}, "read upstreams: PATH is not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			var at string
			all, d := edits(t, "a:1\nb:1\n", map[int]func(string){10: func(path string) { at = path; c.edit(path) }})
			assert.Equal(t, "a b", sets(all))
			assert.EqualError(t, d.Status().Err, strings.ReplaceAll(c.err, "PATH", at))
			assert.Positive(t, d.Status().Failed)
		})
	}
}

func TestFileRecoversFromBadContent(t *testing.T) {
	all, d := edits(t, "a:1\nb:1\n", map[int]func(string){10: write(t, "nonsense"), 60: write(t, "b:1")})
	assert.Equal(t, "a b | b", sets(all))
	assert.NoError(t, d.Status().Err)
}

func TestFileEmptiedIsBelievedOnceItStays(t *testing.T) {
	all, _ := edits(t, "a:1\nb:1\n", map[int]func(string){10: write(t, "")})
	require.Equal(t, "a b | -", sets(all))
	assert.GreaterOrEqual(t, all[1].after, 40*time.Second)
}

func TestFileHalfWrittenIsNotTaken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "upstreams")
	from, err := newFile(FileConfig{Path: path}, DefaultLifetime)
	require.NoError(t, err)
	for _, step := range []struct{ text, want string }{
		{"10.0.0.1:9001", "10.0.0.1:9001"},
		{"10.0.0.1:9001\n10.0.0.2:90", "10.0.0.1:9001"},
		{"10.0.0.1:9001\n10.0.0.2:9002", "10.0.0.1:9001"},
		{"10.0.0.1:9001\n10.0.0.2:9002", "10.0.0.1:9001 10.0.0.2:9002"},
	} {
		write(t, step.text)(path)
		a, err := from.ask(t.Context(), 0)
		require.NoError(t, err)
		assert.Equal(t, step.want, addresses(a.upstreams))
	}
}

func TestFileRefusesNonsense(t *testing.T) {
	for want, c := range map[string]FileConfig{
		"discovery: file: want a path":                          {},
		"discovery: file: an interval of 1ms: want at least 1s": {Path: "x", Interval: time.Millisecond},
	} {
		_, err := New(Config{File: &c}, seeded())
		assert.EqualError(t, err, want)
	}
}
