package recent

import (
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// now returns an instant of a use.
func now(use uint32) time.Time { return time.UnixMilli(int64(use)) }

// Keys behave like a map of times. At the maximum size, each new key drops the earliest of
// eight.
func TestKeys(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	x := Keys{base: now(0)}
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

// A step of the wall clock changes no age. Otherwise keys used after a step backwards would look the oldest.
func TestKeysAfterAStepOfTheWallClock(t *testing.T) {
	var x Keys
	before := time.Now()
	x.Put(1, before)
	for _, d := range []time.Duration{-time.Hour, time.Hour} {
		since, ok := x.Age(1, stepped(before.Add(time.Second), d))
		require.True(t, ok)
		assert.Equal(t, time.Second, since, d)
	}
}

// stepped is a reading of the clock after its wall time was changed by d: its monotonic time is that of t. The package time has
// no function for it. The lower 30 bits of a Time's first word are nanoseconds, those above are seconds.
func stepped(t time.Time, d time.Duration) time.Time {
	*(*uint64)(unsafe.Pointer(&t)) += uint64(d/time.Second) << 30
	return t
}

// At the maximum size nearly all of 100,000 keys remain, and memory is bounded.
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
	assert.Len(t, x.keys, maxSlots)
	assert.Len(t, x.uses, maxSlots)
	assert.LessOrEqual(t, x.Len(), maxSlots)
	assert.False(t, slices.ContainsFunc(keys[:100], x.Has), "the earliest are forgotten")
}

// BenchmarkKeys measures the memory of 64 sets of 100,000 keys: at most 1.5 MiB per set.
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

// The bound drops values that were not used recently, and never those to keep.
func TestMapIsBounded(t *testing.T) {
	m := NewMap(100, func(open int) bool { return open > 0 })
	m.Put(5, 1)
	m.Put(7, 2)
	m.Put(8, 0)
	for key := range uint64(1000) {
		m.Put(1000+key, 0)
		assert.LessOrEqual(t, len(m.young)+len(m.old), 102)
	}
	assert.Equal(t, []int{1, 2}, []int{value(m, 5), value(m, 7)})
	for key := uint64(3000); len(m.young) > 10; key++ {
		m.Put(key, 0) // until the young generation has room
	}
	for _, key := range slices.Collect(maps.Keys(m.old))[:5] {
		m.Put(key, 0) // in the young generation again
	}
	for key := range m.young {
		assert.NotContains(t, m.old, key, "in both halves")
	}
	assert.Equal(t, -1, value(m, 8))
	m.Put(7, 0)
	m.Put(5, 0)
	for key := range uint64(1000) {
		m.Put(5000+key, 0)
		m.Put(9, -2)
	}
	assert.LessOrEqual(t, len(m.old), 50)
	assert.Equal(t, []int{-1, -2, -1}, []int{value(m, 7), value(m, 9), value(m, 123456)})
	assert.NotContains(t, m.young, uint64(123456), "Get remembers nothing")
}

// value returns the value of a key, or -1.
func value(m *Map[int], key uint64) int {
	if v, ok := m.Get(key); ok {
		return v
	}
	return -1
}
