package recent

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// now is an instant of a use.
func now(use uint32) time.Time { return time.UnixMilli(int64(use)) }

// Keys are a map of times, which at full size drops the earliest of eight.
func TestKeys(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var x Keys
	want := map[uint64]uint32{}
	for step := range uint32(50_000) {
		key := 1 + rng.Uint64N(3000)
		if rng.IntN(3) == 0 {
			x.Drop(key)
			delete(want, key)
		} else {
			x.put(key, step)
			want[key] = step
		}
		since, ok := x.Age(key, now(step))
		_, there := want[key]
		require.Equal(t, there, ok)
		if ok {
			require.Equal(t, time.Duration(step-want[key])*time.Millisecond, since)
		}
	}
	require.Equal(t, len(want), x.Len())
	for key := range want {
		require.True(t, x.Has(key), key)
	}
	x.DropFunc(now(60_000), func(key uint64, since time.Duration) bool {
		return key%2 == 0 || since != time.Duration(60_000-want[key])*time.Millisecond
	})
	for key := range want {
		require.Equal(t, key%2 == 1, x.Has(key))
	}
}

// At full size nearly all of 100,000 keys stay, and memory is bounded.
func TestKeysAreBounded(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	var x Keys
	keys := make([]uint64, 100_000)
	for i := range keys {
		keys[i] = rng.Uint64()
		x.put(keys[i], uint32(i))
	}
	found := 0
	for _, key := range keys {
		if x.Has(key) {
			found++
		}
	}
	assert.Greater(t, found, 94_000)
	for i := range uint32(1_000_000) {
		x.put(rng.Uint64(), 100_000+i)
	}
	assert.Len(t, x.keys, maxPlaces)
	assert.Len(t, x.uses, maxPlaces)
	assert.LessOrEqual(t, x.Len(), maxPlaces)
	assert.False(t, slices.ContainsFunc(keys[:100], x.Has), "the earliest are forgotten")
}

// BenchmarkKeys is the memory of 64 sets of 100,000 keys: at most 1.5 MiB for each.
func BenchmarkKeys(b *testing.B) {
	const sets, keys = 64, 100_000
	rng := rand.New(rand.NewPCG(9, 10))
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		tables := make([]Keys, sets)
		for i := range tables {
			for range keys {
				tables[i].put(rng.Uint64(), 1)
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(tables)
	}
	if mib := float64(after.HeapAlloc-before.HeapAlloc) / (1 << 20); mib > 1.6*sets {
		b.Fatalf("%.0f MiB", mib)
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB")
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/sets/keys, "B/key")
}
