package memory

import (
	"context"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
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

// restored gives the collector back its settings at the end of the test.
func restored(t *testing.T) {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	t.Cleanup(func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	})
}

// The ballast has small heaps collected less often.
func TestTheCollectorsAim(t *testing.T) {
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
