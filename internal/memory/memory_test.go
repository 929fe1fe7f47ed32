package memory

import (
	"context"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

const mib = 1 << 20

func TestBodiesFitTheLimit(t *testing.T) {
	for _, c := range []struct{ limit, wanted, want int64 }{
		{math.MaxInt64, 1024 * mib, 1024 * mib},
		{1280 * mib, 1024 * mib, 1024 * mib},
		{1000 * mib, 1024 * mib, 744 * mib},
		{360 * mib, 1024 * mib, 120 * mib},
		{120 * mib, 1024 * mib, 40 * mib},
		{120 * mib, 16 * mib, 16 * mib},
	} {
		assert.Equal(t, c.want, (&Memory{Limit: c.limit}).Bodies(c.wanted), "%+v", c)
	}
}

// restored restores the collector's settings at the end of the test.
func restored(t *testing.T) {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	t.Cleanup(func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	})
}

// With the ballast, small heaps are collected less often.
func TestBallastDelaysCollections(t *testing.T) {
	restored(t)
	t.Setenv("GOGC", "")
	m := New()
	runtime.GC()
	sample := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	assert.Greater(t, sample[0].Value.Uint64(), sample[1].Value.Uint64()+ballastBytes/2)
	m.Limit = 500 * mib
	m.Bound(100 * mib)
	assert.EqualValues(t, 100*mib+Rest+ballastBytes, debug.SetMemoryLimit(-1))
	m.Bound(400 * mib)
	assert.EqualValues(t, 500*mib+ballastBytes, debug.SetMemoryLimit(-1))
}

func TestTheEnvironmentTakesPrecedence(t *testing.T) {
	restored(t)
	debug.SetGCPercent(123)
	debug.SetMemoryLimit(700 * mib) // as the runtime reads it
	t.Setenv("GOGC", "123")
	t.Setenv("GOMEMLIMIT", "700MiB")
	m := New()
	assert.EqualValues(t, 700*mib, m.Limit)
	assert.Equal(t, 123, debug.SetGCPercent(123))
	m.Bound(1000 * mib)
	assert.EqualValues(t, 700*mib, debug.SetMemoryLimit(-1))
}

func TestMemoryIsGivenBack(t *testing.T) {
	m := &Memory{}
	large := make([]byte, 300*mib)
	for i := 0; i < len(large); i += 4096 {
		large[i] = 1
	}
	runtime.KeepAlive(large)
	before := m.taken()
	assert.Greater(t, before, int64(300*mib))
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), giveBackInterval+time.Second)
		defer cancel()
		m.GiveBack(ctx)
	})
	assert.Less(t, m.taken(), before-250*mib)
}

func TestSystemLimit(t *testing.T) {
	limit := func(files map[string]string) int64 {
		root := fstest.MapFS{}
		for path, text := range files {
			root[path] = &fstest.MapFile{Data: []byte(text)}
		}
		return systemLimit(root)
	}
	assert.EqualValues(t, math.MaxInt64, limit(nil))
	assert.EqualValues(t, math.MaxInt64, limit(map[string]string{"proc/meminfo": "?", "proc/self/cgroup": "?\n0\n", "sys/fs/cgroup/memory.max": "?"}))

	const none = "9223372036854771712\n"
	for name, c := range map[string]struct {
		cgroup string
		limits map[string]string // by path below sys/fs/cgroup
		want   int64
	}{
		"no cgroup":       {"", nil, 2 << 30},
		"v2, a container": {"0::/\n", map[string]string{"memory.max": "134217728\n", "memory.high": "max\n"}, 128 << 20},
		"v2, a slice": {"0::/system.slice/pilotfish.service\n", map[string]string{
			"system.slice/pilotfish.service/memory.max":  "max\n",
			"system.slice/pilotfish.service/memory.high": "629145600\n",
			"system.slice/memory.max":                    "536870912\n",
			"system.slice/memory.high":                   "max\n",
		}, 512 << 20},
		"v2, more than the machine has":   {"0::/\n", map[string]string{"memory.max": "4294967296\n"}, 2 << 30},
		"v2, a name outside of the mount": {"0::/../../other\n", map[string]string{"memory.max": "268435456\n"}, 256 << 20},
		"v1": {"5:cpu,cpuacct:/a\n4:memory:/a/b\n0::/a\n", map[string]string{
			"memory/a/b/memory.limit_in_bytes": none,
			"memory/a/memory.limit_in_bytes":   "268435456\n",
			"memory/memory.limit_in_bytes":     none,
		}, 256 << 20},
		"v1, a container that sees the host's names": {"4:memory:/docker/0123\n", map[string]string{"memory/memory.limit_in_bytes": "268435456\n"}, 256 << 20},
	} {
		files := map[string]string{"proc/meminfo": "MemTotal:        2097152 kB\nMemFree:          100 kB\n", "proc/self/cgroup": c.cgroup}
		for path, text := range c.limits {
			files["sys/fs/cgroup/"+path] = text
		}
		assert.Equal(t, c.want, limit(files), name)
	}
}
