package memory

import (
	"context"
	"math"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// none is that there are no bodies.
func none() int64 { return 0 }

// collectsAt sets the collector's aim, without a limit of memory, until the test ends.
// What the environment says counts as unsaid.
func collectsAt(t *testing.T, percent int) {
	t.Helper()
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	before, limit := debug.SetGCPercent(percent), debug.SetMemoryLimit(math.MaxInt64)
	t.Cleanup(func() {
		debug.SetGCPercent(before)
		debug.SetMemoryLimit(limit)
	})
}

func TestTheCollectorsAim(t *testing.T) {
	for live, want := range map[uint64]int{
		0: 400, 1 << 20: 400, 6 << 20: 400, 12 << 20: 200, 24 << 20: 100, 48 << 20: 50, 96 << 20: 25, 1 << 40: 25,
	} {
		assert.Equal(t, want, gcPercent(live), "%d MiB", live>>20)
	}
}

// The aim follows what lives, from one collection to the next.
func TestTheAimFollowsTheHeap(t *testing.T) {
	collectsAt(t, 100)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		Keep(ctx, none)
	}()
	aim := func() int {
		percent := debug.SetGCPercent(100)
		debug.SetGCPercent(percent)
		return percent
	}
	reaches := func(most int) {
		t.Helper()
		require.Eventually(t, func() bool {
			runtime.GC()
			return aim() <= most
		}, 20*time.Second, 10*time.Millisecond)
	}
	large := make([]byte, 300<<20)
	reaches(gcLeast)
	runtime.KeepAlive(large)
	require.Eventually(t, func() bool {
		runtime.GC()
		return aim() > gcLeast
	}, 20*time.Second, 10*time.Millisecond)
	cancel()
	<-ended
}

func TestMemoryIsGivenBack(t *testing.T) {
	collectsAt(t, 100)
	large := make([]byte, 300<<20)
	for i := 0; i < len(large); i += 4096 {
		large[i] = 1
	}
	k := newKeeper(none)
	_, kept := k.read()
	require.Greater(t, kept, uint64(300<<20))
	runtime.KeepAlive(large)
	runtime.GC()
	k.giveBack()
	live, kept := k.read()
	assert.LessOrEqual(t, kept, 2*live+spare)
}

// After a burst nothing is collected, because there are no jobs. What it has left
// behind is found all the same.
func TestMemoryIsGivenBackWhenNothingHappens(t *testing.T) {
	collectsAt(t, -1) // nothing is collected by itself
	k := newKeeper(none)
	large := make([]byte, 300<<20)
	for i := 0; i < len(large); i += 4096 {
		large[i] = 1
	}
	runtime.GC() // it lives
	runtime.KeepAlive(large)
	for range quietLooks {
		k.giveBack()
		_, kept := k.read()
		require.Greater(t, kept, uint64(300<<20), "the last collection says that it lives")
	}
	k.giveBack()
	_, kept := k.read()
	assert.Less(t, kept, uint64(200<<20))
}

// What the environment says of the collector holds.
func TestTheEnvironmentTakesPrecedence(t *testing.T) {
	collectsAt(t, 123)
	t.Setenv("GOGC", "123")
	Keep(t.Context(), none)
	assert.Equal(t, 123, debug.SetGCPercent(123))
	debug.SetMemoryLimit(1 << 40)
	t.Setenv("GOMEMLIMIT", "1TiB")
	newKeeper(none).aim()
	assert.EqualValues(t, 1<<40, debug.SetMemoryLimit(-1))
}

// Bodies do not raise the limit, however much of what lives they are. What else lives
// never comes near it.
func TestTheLimit(t *testing.T) {
	const bodies = 1 << 30
	for live := uint64(0); live < 4<<30; live += 8 << 20 {
		l := limit(live, bodies)
		assert.GreaterOrEqual(t, l, int64(live+besides/3), "%d MiB", live>>20)
		if live <= bodies+besides/2 {
			assert.EqualValues(t, bodies+besides, l, "%d MiB", live>>20)
		}
	}
}

// The collector has a limit that a burst cannot outrun, and that what lives never meets.
func TestTheLimitFollowsWhatLives(t *testing.T) {
	collectsAt(t, 100)
	large := make([]byte, 300<<20)
	runtime.GC()
	k := newKeeper(none)
	k.aim()
	assert.GreaterOrEqual(t, debug.SetMemoryLimit(-1), int64(450<<20), "half as much again as lives")
	runtime.KeepAlive(large)
	runtime.GC()
	k.aim()
	assert.EqualValues(t, besides, debug.SetMemoryLimit(-1))
	bodies := int64(1 << 30)
	k = newKeeper(func() int64 { return bodies })
	for _, bodies = range []int64{1 << 30, 2 << 30} { // a reload changes it
		k.aim()
		assert.Equal(t, bodies+besides, debug.SetMemoryLimit(-1))
	}
}
