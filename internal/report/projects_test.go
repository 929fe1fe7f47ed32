package report

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
)

var _ pool.CacheSet = (*projectSet)(nil)

// TestProjectSetAgreesWithAMap adds the kinds of keys that trouble such a table:
// 0, repeated ones, and many that start at the same slot.
func TestProjectSetAgreesWithAMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	key := func() uint64 {
		switch rng.IntN(3) {
		case 0:
			return rng.Uint64N(64)
		case 1:
			return rng.Uint64() << 32 // alike in the bits that choose the slot
		default:
			return rng.Uint64()
		}
	}
	for range 100 {
		naive := map[uint64]struct{}{}
		set := newProjectSet(rng.IntN(50))
		for range rng.IntN(400) {
			k := key()
			set.add(k, 0)
			if k != 0 {
				naive[k] = struct{}{}
			}
			require.Equal(t, len(naive), set.Len())
		}
		require.LessOrEqual(t, 2*set.Len(), len(set.slots))
		for k := range naive {
			require.True(t, set.Contains(k), "%#x", k)
		}
		for range 200 {
			k := key()
			_, want := naive[k]
			require.Equal(t, want, set.Contains(k), "%#x", k)
		}
		require.False(t, set.Contains(0))
	}
}

func TestProjectSetEmpty(t *testing.T) {
	for _, p := range []*projectSet{nil, {}, newProjectSet(0)} {
		assert.Zero(t, p.Len())
		assert.False(t, p.Contains(0))
		assert.False(t, p.Contains(1))
	}
}

func TestProjectSetContainsWithoutAllocation(t *testing.T) {
	set := newProjectSet(0)
	for k := range uint64(1000) {
		set.add(k*0x9e3779b97f4a7c15, 0)
	}
	found := 0
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		for k := range uint64(2000) {
			if set.Contains(k * 0x9e3779b97f4a7c15) {
				found++
			}
		}
	}))
	assert.Equal(t, 101*999, found, "1 to 999, in each of the runs")
}
