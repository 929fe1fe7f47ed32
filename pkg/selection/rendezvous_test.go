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

// Upstreams get projects in proportion to their weights. Projects and upstreams have small consecutive numbers, which a
// weak hash would not distribute evenly.
func TestRendezvousRespectsWeights(t *testing.T) {
	for _, shares := range [][]float64{slices.Repeat([]float64{1.0 / 14}, 14), {0.1, 0.2, 0.3, 0, 0.4}} {
		var ids []uint64
		for id := range shares {
			ids = append(ids, uint64(id))
		}
		counts := make([]int, len(ids))
		for project := uint64(1); project <= 28000; project++ {
			counts[home(project, ids, func(id uint64) float64 { return shares[id] })]++
		}
		require.NoError(t, policytest.Spread(counts, shares), "shares %v", shares)
	}
}

// Without a weight, an upstream has a negative score: it ranks below every upstream with a weight. The scores of two such
// upstreams differ, so their order is the same at every sidecar.
func TestRendezvousRanksZeroWeightLast(t *testing.T) {
	a, b := selection.Rendezvous(5, 1, 0), selection.Rendezvous(5, 2, 0)
	assert.NotEqual(t, a, b)
	assert.Negative(t, a)
	assert.Negative(t, b)
	assert.Positive(t, selection.Rendezvous(5, 3, 1e-9))
}
