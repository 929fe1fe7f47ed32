package discovery

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
)

// listed is File with the defaults.
func listed(path string) *File {
	c := &File{}
	c.SetDefaults()
	c.Path = path
	return c
}

func fileOf(t *testing.T, path string) *Discovery {
	t.Helper()
	d, err := New(Config{Settings: Settings{File: listed(path)}, Rand: seeded()})
	require.NoError(t, err)
	return d
}

// edits runs a Discovery of a file for two minutes, while the file
// is changed at the given seconds.
func edits(t *testing.T, first string, later map[int]func(path string)) (all []sent, d *Discovery) {
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
		"bad line": {write(t, "a:1\nb:1\nb:x\n"), "read upstreams: PATH: line 3: \"b:x\" is not host:port: the port is not between 1 and 65535"},
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
	from := newFile(*listed(path))
	for _, step := range []struct{ text, want string }{
		{"10.0.0.1:9001", "10.0.0.1:9001"},
		{"10.0.0.1:9001\n10.0.0.2:90", "10.0.0.1:9001"},
		{"10.0.0.1:9001\n10.0.0.2:9002", "10.0.0.1:9001"},
		{"10.0.0.1:9001\n10.0.0.2:9002", "10.0.0.1:9001 10.0.0.2:9002"},
	} {
		write(t, step.text)(path)
		a, err := from.source.ask(t.Context(), 0)
		require.NoError(t, err)
		assert.Equal(t, step.want, addresses(a.upstreams))
	}
}

func TestParseList(t *testing.T) {
	want := []pool.Upstream{
		{Address: "b:2", Weight: 2.5, Cores: 16, Draining: true},
		{Address: "a:1", StartedAt: epoch, StopsAt: epoch.Add(24 * time.Hour)},
	}
	for name, text := range map[string]string{
		"lines": "# the rules\n\n b:2  weight=2.5 cores=16\tdraining=true # going\r\nA:1 preemptible=true started_at=2026-03-01T12:00:00Z",
		"JSON": ` [{"address":"b:2","weight":2.5,"cores":16,"draining":true},
			{"address":"a:1","started_at":"2026-03-01T13:00:00+01:00","stops_at":"2026-03-02T12:00:00Z"}]` + "\n",
	} {
		got, err := parseList([]byte(text))
		require.NoError(t, err, name)
		assert.Equal(t, want, got, name)
	}
	for _, empty := range []string{"", "\n# none\n", "[]", "\n [ ]\n"} {
		got, err := parseList([]byte(empty))
		require.NoError(t, err)
		assert.Empty(t, got)
	}
}

func TestParseListNamesTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"a:1\nb":            `line 2: "b" is not host:port`,
		"a:1\n\nb:1 weight": `line 3: "weight" is not key=value`,
		"a:1 weight=x":      `line 1: weight="x": want a number from 0 to 1e+06`,
		"a:1 colour=blue":   `line 1: colour="blue": unknown key`,
		"\x00\xff":          `line 1: "\x00\xff" is not host:port`,
		"[\n{\"address\":\"a:1\"},\n  {\"address\":\"b\"}]":               `line 3: "b" is not host:port`,
		"[\n{\"address\":\"a:1\"},\n\n{\"address\":\"b:1\",\n\"x\":1}]":   `line 4: json: unknown field "x"`,
		"[\n{\"address\":\"a:1\",\n\"weight\":-1}]":                       `line 2: weight -1: want a number from 0 to 1e+06`,
		"[\n{\"address\":\"a:1\"},\n{\"address\":\"a:1\",\"cores\":1e9}]": `line 3: json: cannot unmarshal number 1e9 into Go struct field Upstream.cores of type int`,
		"[\n{\"address\":\"a:1\"},\n{\"cores\":-1,\"address\":\"a:1\"}]":  `line 3: cores -1: want a number from 0 to 65536`,
		"[\n{\"address\":\n":          `line 3: unexpected EOF`,
		"[\n":                         `line 2: unexpected EOF`,
		"[\n{\"address\":\"a:1\"}\n}": `line 3: invalid character '}' after array element`,
		"[\n{]":                       `line 2: invalid character ']' looking for beginning of object key string`,
		"[]\nx":                       `line 2: something follows the list`,
		"[]\n[]":                      `line 2: something follows the list`,
	} {
		_, err := parseList([]byte(text))
		assert.EqualError(t, err, want, text)
	}
}

// FuzzList holds that a list that is accepted is valid, and that a JSON list says
// the same when written and read again.
func FuzzList(f *testing.F) {
	f.Add([]byte("a:1\nb:2 weight=2 # c"))
	f.Add([]byte(`[{"address":"a:1","started_at":"2026-03-01T12:00:00Z"}]`))
	f.Add([]byte("[\n{]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := parseList(text)
		if err != nil {
			require.Regexp(t, `^line [0-9]+: `, err.Error())
			return
		}
		for _, u := range list {
			checked := u
			require.NoError(t, check(&checked))
			require.Equal(t, u.Address, checked.Address)
		}
		if list == nil {
			list = []pool.Upstream{}
		}
		data, err := json.Marshal(list)
		require.NoError(t, err)
		again, err := parseList(data)
		require.NoError(t, err, "%s", data)
		require.True(t, same(list, again))
	})
}

func TestAttributesAtTheirBounds(t *testing.T) {
	for attribute, good := range map[string]bool{
		"weight=0": true, "weight=1000000": true, "weight=1000001": false, "weight=-1": false, "weight=NaN": false,
		"cores=0": true, "cores=65536": true, "cores=65537": false, "cores=-1": false,
	} {
		_, err := parseLine([]string{"a:1", attribute})
		assert.Equal(t, good, err == nil, "%s: %v", attribute, err)
	}
}

// Both forms of docs/upstreams.md name the same upstreams.
func TestTheFileOfTheDocuments(t *testing.T) {
	var lists [2][]pool.Upstream
	for i, name := range []string{"upstreams.json", "upstreams.txt"} {
		text, err := os.ReadFile("../../docs/examples/" + name)
		require.NoError(t, err)
		lists[i], err = parseList(text)
		require.NoError(t, err)
	}
	assert.Len(t, lists[0], 3)
	assert.Equal(t, lists[0], lists[1])
}
