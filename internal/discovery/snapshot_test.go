package discovery

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func keeping(path string) func(*Config) { return func(c *Config) { c.Snapshot = path } }

func TestSnapshotCarriesASidecarOverARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	bubble(t, func(t *testing.T) {
		up := &agent{replies: []scripted{list("10", "a"), list("11", "a b").late(time.Second), list("11", "a b").quiet()}}
		d := consulOf(t, up, keeping(path))
		require.Equal(t, "a | a b", sets(follow(t, d, time.Minute)))
	})
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, left, 1, "no temporary file is left")

	bubble(t, func(t *testing.T) {
		down := &agent{replies: []scripted{{refuse: true}, {refuse: true}, list("3", ""), list("4", "a b c").late(20 * time.Second), list("4", "a b c").quiet()}}
		var told []string
		d := consulOf(t, down, func(c *Config) { c.Snapshot = path; troubles(&told)(c) })
		all := follow(t, d, time.Minute)
		assert.Equal(t, "a b | a b c", sets(all))
		assert.Zero(t, all[0].after, "at once")
		assert.Equal(t, []string{
			"the Consul agent gives no reply: dial tcp 127.0.0.1:8500: connect: connection refused; 2 upstreams kept",
			"consul service rules at consul.test:8500 names no upstream; 2 upstreams kept for 30 s",
			"",
		}, told)
	})
}

// A snapshot that is there is sent only if the source names nothing.
func TestWhenASnapshotIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	for says, want := range map[string]string{"a": "a", "": "old | -"} {
		require.NoError(t, os.WriteFile(path, []byte(snapshotOf("old")), 0o600))
		bubble(t, func(t *testing.T) {
			replies := []scripted{list("2", says), list("2", says).late(30 * time.Second), list("2", says).quiet()}
			assert.Equal(t, want, sets(follow(t, consulOf(t, &agent{replies: replies}, keeping(path)), time.Minute)))
		})
	}
}

// snapshotOf is the text of a snapshot.
func snapshotOf(names string) string {
	var all []string
	for _, u := range ups(names) {
		all = append(all, fmt.Sprintf("  {\n   \"address\": %q\n  }", u.Address))
	}
	return "{\n \"source\": \"consul service rules at consul.test:8500\",\n \"upstreams\": [\n" + strings.Join(all, ",\n") + "\n ]\n}"
}

func TestSnapshotThatIsCorruptIsReportedAndIgnored(t *testing.T) {
	for name, c := range map[string]struct{ text, err string }{
		"empty":            {"", ": unexpected end of JSON input"},
		"another source":   {strings.Replace(snapshotOf("a"), "rules", "other", 1), ` has 1 upstreams of "consul service other`},
		"a bad address":    {strings.Replace(snapshotOf("a b"), "b:1", "b", 1), `: "b" is not host:port`},
		"a bad weight":     {strings.Replace(snapshotOf("a"), `"a:1"`, `"a:1","weight":-1`, 1), ": a:1 has weight -1 and 0 cores: want 0 to 1e+06 and 0 to 65536"},
		"bad cores":        {strings.Replace(snapshotOf("a"), `"a:1"`, `"a:1","cores":70000`, 1), ": a:1 has weight 0 and 70000 cores: want 0 to"},
		"cut short":        {snapshotOf("a b")[:90], ": unexpected end of JSON input"},
		"too many":         {snapshotOf(many(maxUpstreams + 1)), " has 10001 upstreams of "},
		"longer than that": {strings.Repeat(" ", maxFile+1), " is longer than 4194304 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "snapshot")
			require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
			bubble(t, func(t *testing.T) {
				a := &agent{replies: []scripted{{refuse: true}, {refuse: true}, {refuse: true}, list("10", "x"), list("10", "x").quiet()}}
				var told []string
				d := consulOf(t, a, func(cfg *Config) { cfg.Snapshot = path; troubles(&told)(cfg) })
				assert.Equal(t, "x", sets(follow(t, d, time.Minute)))
				require.Len(t, told, 2)
				assert.Contains(t, told[0], "no upstream is known yet; the snapshot "+path)
				assert.Contains(t, told[0], c.err)
				assert.Empty(t, told[1], "it was written anew")
			})
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, snapshotOf("x"), string(text))
		})
	}
}

func TestSnapshotThatCannotBeWrittenIsReported(t *testing.T) {
	bubble(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "missing", "snapshot")
		d := consulOf(t, &agent{replies: []scripted{list("10", "a"), list("10", "a").quiet()}}, keeping(path))
		assert.Equal(t, "a", sets(follow(t, d, time.Minute)), "and costs nothing else")
		assert.Contains(t, d.Status().Trouble, "the snapshot cannot be written: ")
	})
}

func TestSnapshotWithoutAFileIsNoError(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := consulOf(t, &agent{replies: []scripted{{refuse: true}}}, keeping(filepath.Join(t.TempDir(), "none")))
		assert.Empty(t, follow(t, d, time.Minute))
		assert.NotContains(t, d.Status().Trouble, "snapshot")
	})
}
