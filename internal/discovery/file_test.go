package discovery

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
)

// edits runs a Discovery of a file for two minutes, while the file
// is changed at the given seconds.
func edits(t *testing.T, first string, later map[int]func(path string)) (all []sent, d *Discovery) {
	path := filepath.Join(t.TempDir(), "upstreams")
	require.NoError(t, os.WriteFile(path, []byte(first), 0o600))
	synctest.Test(t, func(t *testing.T) {
		var err error
		d, err = New(configOf(Settings{File: path}))
		require.NoError(t, err)
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
			write(t, "c:1\na:1")(path + ".new")
			assert.NoError(t, os.Rename(path+".new", path))
		},
		60: func(path string) { // the same length and time
			info, err := os.Stat(path)
			assert.NoError(t, err)
			write(t, "d:1\na:1")(path)
			assert.NoError(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
		},
		80:  write(t, "nonsense"),
		100: write(t, "d:1"),
		110: write(t, "d:1 draining=true"), // a fact of an upstream is part of the set
	})
	assert.Equal(t, "a b | a b c | a c | a d | d | (d)", sets(all))
	assert.Zero(t, all[0].after)
	assert.Less(t, all[1].after, 16*time.Second)
	assert.Empty(t, d.Status().Trouble)
	assert.EqualValues(t, 6, d.Status().Applied)
}

func TestFileKeepsTheSetWhileTheFileIsBad(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(path string)
		err  string
	}{
		"bad line": {write(t, "a:1\nb:1\nb:x\n"), "PATH, line 3: \"b:x\" is not host:port: the port is not between 1 and 65535"},
		"gone":     {func(path string) { assert.NoError(t, os.Remove(path)) }, "PATH cannot be read: no such file or directory"},
		"huge":     {func(path string) { assert.NoError(t, os.Truncate(path, maxFile+1)) }, "PATH is longer than 4194304 bytes"},
		"a pipe": {func(path string) {
			assert.NoError(t, os.Remove(path))
			assert.NoError(t, syscall.Mkfifo(path, 0o600))
		}, "PATH is not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			var at string
			all, d := edits(t, "a:1\nb:1\n", map[int]func(string){10: func(path string) { at = path; c.edit(path) }})
			assert.Equal(t, "a b", sets(all))
			assert.Equal(t, strings.ReplaceAll(c.err, "PATH", at)+"; 2 upstreams kept", d.Status().Trouble)
			assert.Positive(t, d.Status().Failed)
		})
	}
}

func TestParseList(t *testing.T) {
	got, err := parseList("f", []byte("# the rules\n\n b:2  weight=1e6 cores=65536\tdraining=true for=heavy # going\r\nA:1 preemptible=true started_at=2026-03-01T12:00:00Z"))
	require.NoError(t, err)
	assert.Equal(t, []pool.Upstream{
		{Address: "b:2", Weight: 1e6, Cores: 65536, Draining: true, Heavy: true},
		{Address: "a:1", StartedAt: epoch, StopsAt: epoch.Add(24 * time.Hour)},
	}, got)
	for text, want := range map[string]string{
		"a:1\nb":            `f, line 2: "b" is not host:port; the port is missing: write b:PORT`,
		"a:1\n\nb:1 weight": `f, line 3: "weight" is not key=value`,
		"a:1 weight=x":      `f, line 1: weight="x": want a number from 0 to 1e+06`,
		"a:1 core=4":        `f, line 1: core="4": unknown key; did you mean cores?`,
		"a:1 colour=blue":   `f, line 1: colour="blue": unknown key`,
		"\x00\xff":          `f, line 1: "\x00\xff" is not host:port`,
		"[]":                `f, line 1: "[]" is not host:port`,
	} {
		_, err := parseList("f", []byte(text))
		assert.EqualError(t, err, want, text)
	}
}

// FuzzList holds that what a list says is valid, and the same after a restart.
func FuzzList(f *testing.F) {
	f.Add([]byte("a:1\nb:2 weight=2 # c"))
	f.Add([]byte("[::1]:1 weight=1e-7 cores=5 started_at=1772366400.123456789 stops_at=2026-03-01T12:00:00+01:00 draining=1 preemptible=T"))
	path := filepath.Join(f.TempDir(), "snapshot")
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := parseList("f", text)
		if err != nil {
			require.Regexp(t, `^f, line [0-9]+: `, err.Error())
			return
		}
		kept := snapshot{path: path, source: "f"}
		kept.write(func(c *content) { c.Upstreams = list })
		require.NoError(t, kept.problem())
		again, err := kept.decode()
		require.NoError(t, err)
		require.True(t, same(list, again.Upstreams))
	})
}

func TestTheFileOfTheDocuments(t *testing.T) {
	const path = "../../docs/examples/upstreams.txt"
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	list, err := parseList(path, text)
	require.NoError(t, err)
	assert.Len(t, list, 3)
}

func TestAttributesRefuse(t *testing.T) {
	for _, c := range [][2]string{
		{"weight", "-1"}, {"weight", "NaN"}, {"weight", "1000001"}, {"weight", ""},
		{"cores", "-1"}, {"cores", "65537"}, {"cores", "1.5"},
		{"started_at", "-1"}, {"started_at", "NaN"}, {"started_at", "253402300800"}, {"started_at", "2026-03-01"},
		{"stops_at", "0000-01-01T00:00:00Z"}, {"stops_at", "9999-12-31T23:59:59-01:00"},
		{"for", "all"}, {"preemptible", "maybe"}, {"draining", ""}, {"colour", "blue"},
	} {
		var a attributes
		assert.ErrorContains(t, a.set(c[0], c[1]), c[0]+"=")
		assert.Equal(t, attributes{}, a, "a wrong value changes nothing")
	}
	assert.Less(t, len(new(attributes).set(strings.Repeat("k", 900_000), strings.Repeat("v", 900_000)).Error()), 250, "a line of a file can be long")
}

// FuzzMeta checks that an upstream is valid whatever metadata its instance has, and
// survives the snapshot.
func FuzzMeta(f *testing.F) {
	f.Add("16", "2026-03-01T10:00:00Z", "1772445600", "true", "false", "10.0.0.1", 9001)
	f.Add("", "1e10", "253402300799.999999999", "1", "T", "::1", 1)
	f.Add("-1", "9999-12-31T23:59:59Z", "NaN", "x", "", "a b", 0)
	f.Fuzz(func(t *testing.T, cores, started, stops, preemptible, draining, host string, port int) {
		e := &api.ServiceEntry{Service: &api.AgentService{Address: host, Port: port, Meta: map[string]string{
			"cores": cores, "started_at": started, "stops_at": stops, "preemptible": preemptible, "draining": draining,
		}}}
		u, err := readEntry(e)
		if u.Address == "" {
			require.Error(t, err)
			return
		}
		text, err := json.Marshal(u)
		require.NoError(t, err)
		var back pool.Upstream
		require.NoError(t, json.Unmarshal(text, &back))
		require.True(t, same([]pool.Upstream{u}, []pool.Upstream{back}), "%v", u)
	})
}
