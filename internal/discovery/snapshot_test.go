package discovery

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
)

func keeping(path string) func(*Config) { return func(c *Config) { c.Snapshot = path } }

// A snapshot that is there is sent only if the source names nothing.
func TestWhenASnapshotIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	for says, want := range map[string]string{"a": "a", "": "old | -"} {
		require.NoError(t, os.WriteFile(path, []byte(snapshotOf("old")), 0o600))
		synctest.Test(t, func(t *testing.T) {
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
		"a bad address":    {strings.Replace(snapshotOf("a b"), "b:1", "b", 1), `: "b" is not host:port; the port is missing: write b:PORT`},
		"a bad weight":     {strings.Replace(snapshotOf("a"), `"a:1"`, `"a:1","weight":-1`, 1), ": a:1 has weight -1 and 0 cores: want 0 to 1e+06 and 0 to 65536"},
		"bad cores":        {strings.Replace(snapshotOf("a"), `"a:1"`, `"a:1","cores":70000`, 1), ": a:1 has weight 0 and 70000 cores: want 0 to"},
		"cut short":        {snapshotOf("a b")[:90], ": unexpected end of JSON input"},
		"too many":         {snapshotOf(many(maxUpstreams + 1)), " has 10001 upstreams of "},
		"longer than that": {strings.Repeat(" ", maxSnapshot+1), " is longer than 8388608 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "snapshot")
			require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
			synctest.Test(t, func(t *testing.T) {
				a := &agent{replies: []scripted{{refuse: true}, {refuse: true}, {refuse: true}, list("10", "x"), list("10", "x").quiet()}}
				var reported []string
				d := consulOf(t, a, func(cfg *Config) { cfg.Snapshot = path; troubles(&reported)(cfg) })
				assert.Equal(t, "x", sets(follow(t, d, time.Minute)))
				require.Len(t, reported, 2)
				assert.Contains(t, reported[0], "no upstream is known yet; the snapshot "+path)
				assert.Contains(t, reported[0], c.err)
				assert.Empty(t, reported[1], "it was written anew")
			})
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, snapshotOf("x"), string(text))
		})
	}
}

func TestSnapshotThatCannotBeWrittenIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "missing", "snapshot")
		d := consulOf(t, &agent{replies: []scripted{list("10", "a"), list("10", "a").quiet()}}, keeping(path))
		assert.Equal(t, "a", sets(follow(t, d, time.Minute)), "and costs nothing else")
		assert.Contains(t, d.Status().Trouble, "the snapshot cannot be written: ")
	})
}

func TestSnapshotWithoutAFileIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := consulOf(t, &agent{replies: []scripted{{refuse: true}}}, keeping(filepath.Join(t.TempDir(), "none")))
		assert.Empty(t, follow(t, d, time.Minute))
		assert.NotContains(t, d.Status().Trouble, "snapshot")
	})
}

// The durations of jobs are written every five minutes and at the end, beside the set, and are there after a restart.
func TestSnapshotKeepsLengths(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	saved := func() []pool.Length {
		d := consulOf(t, &agent{}, keeping(path))
		list, err := d.Lengths()
		require.NoError(t, err)
		return list
	}
	assert.Empty(t, saved(), "there is no file")
	require.NoError(t, os.WriteFile(path, []byte(snapshotOf("a")), 0o600))
	assert.Empty(t, saved(), "a file of an earlier version")
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		d := consulOf(t, &agent{}, keeping(path))
		ctx, cancel := context.WithTimeout(t.Context(), 12*time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			d.KeepLengths(ctx, func() []pool.Length {
				return []pool.Length{{Seconds: time.Since(start).Minutes(), Jobs: 9}, {Key: 1<<64 - 1, Seconds: 2, Jobs: 3}, {Project: 5, Seconds: 4, Jobs: 1}}
			})
		})
		for _, c := range []struct {
			after  time.Duration
			reply  string
			first  float64
			groups int
		}{{4, "a", 0, 0}, {6, "a b", 5, 3}, {8, "a b c", 5, 3}, {11, "b c", 10, 3}} {
			time.Sleep(time.Until(start.Add(c.after * time.Minute)))
			d.take(time.Now(), reply{upstreams: ups(c.reply)}, nil)
			got := consulOf(t, &agent{}, keeping(path))
			assert.Equal(t, c.reply, names(got.saved))
			list, err := got.Lengths()
			require.NoError(t, err)
			if assert.Len(t, list, c.groups) && c.groups > 0 {
				assert.InDelta(t, c.first, list[0].Seconds, 1e-9)
			}
		}
		wg.Wait()
	})
	assert.Equal(t, []pool.Length{{Seconds: 12, Jobs: 9}, {Key: 1<<64 - 1, Seconds: 2, Jobs: 3}, {Project: 5, Seconds: 4, Jobs: 1}}, saved())
}

// A snapshot of another source stays until this source returns a set.
func TestLengthsReplaceNoSnapshotOfAnotherSource(t *testing.T) {
	path, text := filepath.Join(t.TempDir(), "snapshot"), strings.Replace(snapshotOf("a"), "rules", "other", 1)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	synctest.Test(t, func(t *testing.T) {
		d := consulOf(t, &agent{}, keeping(path))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		d.KeepLengths(ctx, func() []pool.Length { return []pool.Length{{Seconds: 1, Jobs: 1}} })
	})
	left, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, text, string(left))
}

// Durations that cannot be used cost nothing but themselves.
func TestSnapshotWithBadLengths(t *testing.T) {
	for lengths, want := range map[string]string{
		`{"version":2,"groups":[]}`: ": the format has version 2, this program reads 1",
		`[]`:                        ": json: cannot unmarshal array into Go value of type discovery.savedLengths",
		`{"version":1,"groups":[{"seconds":"x"}]}`:   ": json: cannot unmarshal string into Go struct field",
		`{"version":1,"groups":[{"key":-1}]}`:        ": json: cannot unmarshal number -1 into Go struct field",
		`{"version":1,"groups":[{"seconds":1e999}]}`: ": json: cannot unmarshal number 1e999 into Go struct field",
	} {
		path := filepath.Join(t.TempDir(), "snapshot")
		text := strings.TrimSuffix(snapshotOf("a"), "\n}") + ",\n \"lengths\": " + lengths + "}"
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		d := consulOf(t, &agent{}, keeping(path))
		list, err := d.Lengths()
		require.ErrorContains(t, err, "the durations of jobs in the snapshot "+path+want)
		assert.Empty(t, list)
		assert.Equal(t, "a", names(d.saved))
	}
}
