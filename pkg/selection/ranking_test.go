package selection

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWeighIsFiniteAtTheEnds(t *testing.T) {
	for _, hash := range []uint64{0, 1, math.MaxUint64} {
		score := weigh(hash, 1)
		assert.Positive(t, score)
		assert.False(t, math.IsInf(score, 0), "hash %x", hash)
	}
}

// TestRankingKeepsTheFirst compares the bounded ranking with a sort, with
// equal and with unequal weights.
func TestRankingKeepsTheFirst(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for n := range 500 {
		project, views := rng.Uint64(), make([]View, 1+rng.IntN(40))
		want := make([]int, len(views))
		for i := range views {
			want[i] = i
			views[i] = View{ID: rng.Uint64(), Weight: 1}
			if n%2 == 0 {
				views[i].Weight = []float64{0, 0.5, 1, 2, 10}[rng.IntN(5)]
			}
		}
		slices.SortFunc(want, func(i, j int) int {
			return cmp.Compare(
				Rendezvous(project, views[j].ID, views[j].Weight),
				Rendezvous(project, views[i].ID, views[i].Weight))
		})
		var r ranking
		r.rank(newOrder(project, views), views, false)
		require.Equal(t, want[:min(lastRank, len(want))], r.views[:r.n])
	}
}
