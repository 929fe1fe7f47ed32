package selection_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/pkg/selection/policytest"
)

// home returns the upstream with the highest score.
func home(project uint64, ids []uint64, weight func(uint64) float64) uint64 {
	best, score := uint64(0), math.Inf(-1)
	for _, id := range ids {
		if s := selection.Rendezvous(project, id, weight(id)); s > score {
			best, score = id, s
		}
	}
	return best
}

func one(uint64) float64 { return 1 }

func TestRendezvousMovesOnlyTheLostUpstreamsProjects(t *testing.T) {
	ids := []uint64{11, 22, 33, 44, 55, 66, 77}
	const gone = 44
	rest := slices.DeleteFunc(slices.Clone(ids), func(id uint64) bool { return id == gone })
	heirs := map[uint64]int{}
	for project := uint64(1); project <= 7000; project++ {
		before, after := home(project, ids, one), home(project, rest, one)
		if before == gone {
			heirs[after]++
			continue
		}
		require.Equal(t, before, after, "project %d moved for no reason", project)
	}
	for _, id := range rest {
		assert.InDelta(t, 1000.0/6, heirs[id], 60, "heirs %v", heirs)
	}
}

// TestRendezvousBalances uses small consecutive numbers for projects and upstreams, which a
// weak hash would not distribute evenly.
func TestRendezvousBalances(t *testing.T) {
	ids := []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}
	counts, want := make([]int, len(ids)), make([]float64, len(ids))
	for project := uint64(1); project <= 28000; project++ {
		counts[home(project, ids, one)]++
	}
	for i := range want {
		want[i] = 1.0 / 14
	}
	require.NoError(t, policytest.Spread(counts, want))
}

func TestRendezvousRespectsWeights(t *testing.T) {
	weights := []float64{1, 2, 3, 0, 4}
	counts, want := make([]int, 5), []float64{0.1, 0.2, 0.3, 0, 0.4}
	for project := uint64(1); project <= 20000; project++ {
		counts[home(project, []uint64{0, 1, 2, 3, 4}, func(id uint64) float64 { return weights[id] })]++
	}
	require.NoError(t, policytest.Spread(counts, want))
}

// TestRendezvousWeightMovesOnlyItsOwn: if an upstream's weight falls, projects move only away
// from that upstream.
func TestRendezvousWeightMovesOnlyItsOwn(t *testing.T) {
	ids := []uint64{1, 2, 3, 4, 5}
	lighter := func(id uint64) float64 {
		if id == 3 {
			return 0.5
		}
		return 1
	}
	moved := 0
	for project := uint64(1); project <= 5000; project++ {
		before, after := home(project, ids, one), home(project, ids, lighter)
		if before != after {
			require.EqualValues(t, 3, before)
			moved++
		}
	}
	// From 1/5 of the projects to 1/9.
	assert.InDelta(t, 5000*(1.0/5-1.0/9), moved, 80)
}

func TestRendezvousWithoutWeightIsLastInAnOrder(t *testing.T) {
	a, b := selection.Rendezvous(5, 1, 0), selection.Rendezvous(5, 2, 0)
	assert.NotEqual(t, a, b)
	assert.Negative(t, a)
	assert.Negative(t, b)
	assert.Positive(t, selection.Rendezvous(5, 3, 1e-9))
}
