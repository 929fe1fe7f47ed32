package discovery

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
)

func keeping(path string) func(*Config) { return func(c *Config) { c.Consul.Snapshot = path } }

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
		var seen []Status
		d := consulOf(t, down, func(c *Config) {
			c.Consul.Snapshot = path
			c.Observe = func(s Status) { seen = append(seen, s) }
		})
		all := follow(t, d, time.Minute)
		assert.Equal(t, "a b | a b c", sets(all))
		assert.Zero(t, all[0].after, "at once")
		require.Len(t, seen, 4)
		assert.Error(t, seen[0].Err)
		assert.Zero(t, seen[0].BelievedAt)
		assert.Equal(t, 2, seen[0].Upstreams)
		assert.Equal(t, "emptiness", seen[2].Doubt)
		assert.NoError(t, seen[3].Err)
		assert.Equal(t, []uint64{2, 1, 2}, []uint64{seen[3].Applied, seen[3].Refused, seen[3].Failed})
	})
}

func TestSnapshotIsNotReadWhenTheSourceReplies(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	require.NoError(t, os.WriteFile(path, []byte(snapshotOf("old")), 0o600))
	bubble(t, func(t *testing.T) {
		d := consulOf(t, &agent{replies: []scripted{list("10", "a"), list("10", "a").quiet()}}, keeping(path))
		assert.Equal(t, "a", sets(follow(t, d, time.Minute)))
	})
}

func TestSnapshotServesAnEmptyCatalogue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	require.NoError(t, os.WriteFile(path, []byte(snapshotOf("old")), 0o600))
	bubble(t, func(t *testing.T) {
		d := consulOf(t, &agent{replies: []scripted{list("2", ""), list("2", "").late(30 * time.Second), list("2", "").quiet()}}, keeping(path))
		assert.Equal(t, "old | -", sets(follow(t, d, time.Minute)))
	})
}

// snapshotOf is the text of a snapshot.
func snapshotOf(names string) string {
	data, err := json.Marshal(saved{Source: "consul service rules at consul.test:8500", SavedAt: epoch, Upstreams: ups(names)})
	if err != nil {
		panic(err)
	}
	return string(data)
}

func TestSnapshotThatIsCorruptIsReportedAndIgnored(t *testing.T) {
	for name, c := range map[string]struct{ text, err string }{
		"empty":            {"", "unexpected end of JSON input"},
		"cut":              {snapshotOf("a")[:40], "unexpected end of JSON input"},
		"garbage":          {"\x00\x01", "invalid character"},
		"another source":   {strings.Replace(snapshotOf("a"), "rules", "other", 1), `it belongs to "consul service other at consul.test:8500", not to consul service rules`},
		"a bad address":    {strings.Replace(snapshotOf("a b"), "b:1", "b", 1), `upstream 2: "b" is not host:port`},
		"a bad number":     {strings.Replace(snapshotOf("a"), `"a:1"`, `"a:1","weight":-1`, 1), "upstream 1: weight -1: want a number"},
		"too many":         {snapshotOf(many(maxUpstreams + 1)), "it has 10001 upstreams, at most 10000 are allowed"},
		"longer than that": {strings.Repeat(" ", maxSnapshot+1), "is longer than 16777216 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "snapshot")
			require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
			bubble(t, func(t *testing.T) {
				a := &agent{replies: []scripted{{refuse: true}, {refuse: true}, {refuse: true}, list("10", "x"), list("10", "x").quiet()}}
				var first Status
				d := consulOf(t, a, func(cfg *Config) {
					cfg.Consul.Snapshot = path
					cfg.Observe = func(s Status) {
						if first.Source == "" {
							first = s
						}
					}
				})
				assert.Equal(t, "x", sets(follow(t, d, time.Minute)))
				assert.ErrorContains(t, first.SnapshotErr, c.err)
				assert.ErrorContains(t, first.SnapshotErr, "read snapshot")
				assert.NoError(t, d.Status().SnapshotErr, "it was written anew")
			})
			back, err := (&snapshotStore{path: path, source: "consul service rules at consul.test:8500"}).read()
			require.NoError(t, err)
			assert.Equal(t, ups("x"), back)
		})
	}
}

func TestSnapshotThatCannotBeWrittenIsReported(t *testing.T) {
	bubble(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "missing", "snapshot")
		d := consulOf(t, &agent{replies: []scripted{list("10", "a"), list("10", "a").quiet()}}, keeping(path))
		assert.Equal(t, "a", sets(follow(t, d, time.Minute)), "and costs nothing else")
		assert.ErrorContains(t, d.Status().SnapshotErr, "write snapshot: ")
	})
}

func TestSnapshotWithoutAFileIsNoError(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := consulOf(t, &agent{replies: []scripted{{refuse: true}}}, keeping(filepath.Join(t.TempDir(), "none")))
		assert.Empty(t, follow(t, d, time.Minute))
		assert.NoError(t, d.Status().SnapshotErr)
	})
}

func TestSnapshotKeepsEveryFact(t *testing.T) {
	s := &snapshotStore{path: filepath.Join(t.TempDir(), "s"), source: "x"}
	set := []pool.Upstream{{Address: "a:1", Weight: 2, Cores: 3, StartedAt: epoch, StopsAt: epoch.Add(1), Draining: true}, {Address: "b:1"}}
	require.NoError(t, s.write(epoch, set))
	back, err := s.read()
	require.NoError(t, err)
	assert.True(t, same(set, back))
}
