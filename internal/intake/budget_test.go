package intake

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Bodies of all sizes live and end in any order, and each keeps its bytes as long as it
// lives. Those of a larger one stay after the end, for those who still read them.
func TestOnlyMemoryOfSmallBodiesIsUsedAgain(t *testing.T) {
	type kept struct {
		body        *Body
		bytes, want []byte
	}
	budget := NewBudget(maxBody, 16<<20)
	rng := rand.New(rand.NewPCG(1, 2))
	var live, released []kept
	for range 5000 {
		want := make([]byte, rng.IntN(rng.IntN(40<<10)+1))
		for i := range want {
			want[i] = byte(rng.Uint32())
		}
		declared := int64(len(want))
		if rng.IntN(4) == 0 {
			declared = -1
		}
		body, err := ReadBody(iotest.HalfReader(bytes.NewReader(want)), declared, maxBody, budget)
		require.NoError(t, err)
		live = append(live, kept{body, body.Bytes(), want})
		for len(live) > rng.IntN(20) {
			i := rng.IntN(len(live))
			one := live[i]
			live = append(live[:i], live[i+1:]...)
			require.True(t, bytes.Equal(one.want, one.bytes))
			if one.body.Release(); len(one.want) > AtOnce && len(released) < 50 {
				released = append(released, one)
			}
			require.Nil(t, one.body.Bytes())
			one.body.Release() // after the end, it does nothing
		}
	}
	for _, one := range live {
		require.True(t, bytes.Equal(one.want, one.bytes))
		one.body.Release()
	}
	for _, one := range released {
		require.True(t, bytes.Equal(one.want, one.bytes))
	}
	assert.Zero(t, budget.Used())
}

// A small body reuses the memory of an earlier one; only the Body itself is allocated.
func TestASmallBodyLeavesNoGarbage(t *testing.T) {
	budget := NewBudget(maxBody, 16<<20)
	from := bytes.NewReader(nil)
	data := randomBytes(4096)
	round := func() {
		from.Reset(data)
		body, err := ReadBody(from, int64(len(data)), maxBody, budget)
		require.NoError(t, err)
		body.Release()
	}
	assert.LessOrEqual(t, testing.AllocsPerRun(1000, round), 2.0) // one, and with the race detector pools lose things at random
}

func TestRoomsHaveTheNextSize(t *testing.T) {
	var r rooms
	for n, size := range map[int64]int{1: roomStep, roomStep: roomStep, roomStep + 1: 2 * roomStep, largestRoom: largestRoom} {
		room := r.get(n)
		assert.Len(t, room.bytes, size, n)
		r.put(room)
	}
	assert.Nil(t, r.get(largestRoom+1))
	r.put(nil)
}

// What bodies have left never takes much more than the budget, even if the collector does
// not run by itself. It is made to run now and then, not for each body.
func TestBodiesWaitForTheCollector(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/cycles/forced:gc-cycles"}}
	read := func() (taken, forced int64) {
		metrics.Read(heap)
		return int64(heap[0].Value.Uint64()), int64(heap[1].Value.Uint64())
	}
	budget, text := NewBudget(16<<20, 16<<20), make([]byte, 1<<20)
	runtime.GC()
	before, forcedBefore := read()
	const bodies = 400
	for range bodies {
		body, err := ReadBody(bytes.NewReader(text), -1, maxBody, budget)
		require.NoError(t, err)
		require.True(t, body.Whole())
		body.Release()
		taken, _ := read()
		require.Less(t, taken-before, budget.All()+budget.All()/4+int64(len(text)))
	}
	assert.Zero(t, budget.Used())
	_, forced := read()
	assert.Less(t, forced-forcedBefore, int64(bodies/5))
}
