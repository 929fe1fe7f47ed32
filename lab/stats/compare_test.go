package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRatio(t *testing.T) {
	base := []float64{10, 20, 30, 40}
	ratio, ok := Ratio(base, []float64{5, 10, 15, 20})
	require.True(t, ok)
	assert.Equal(t, Interval{0.5, 0.5, 0.5}, ratio, "each pair has the same ratio")
	assert.Equal(t, "0.50 [0.50, 0.50]", ratio.Text(2, 4))

	ratio, ok = Ratio(base, []float64{10, 10, 10, 10})
	require.True(t, ok)
	assert.Equal(t, 0.4, ratio.Value)
	assert.Less(t, ratio.Low, 0.35)
	assert.Greater(t, ratio.High, 0.5)
	again, _ := Ratio(base, []float64{10, 10, 10, 10})
	assert.Equal(t, ratio, again, "the same pairs give the same interval")

	ratio, ok = Ratio([]float64{4}, []float64{1})
	require.True(t, ok)
	assert.Equal(t, "0.250", ratio.Text(3, 1), "one pair has no interval")
	for _, base := range [][]float64{nil, {0, 1}, {math.NaN(), 1}} {
		_, ok := Ratio(base, []float64{1, 2})
		assert.False(t, ok, "%v", base)
	}
}

// TestRatioHoldsTheTruth counts how often the interval holds the true ratio of
// pairs that differ far more from each other than their ratios do.
func TestRatioHoldsTheTruth(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	const trials, truth = 400, 0.9
	for pairs, share := range map[int][2]float64{10: {0.82, 0.95}, 40: {0.90, 0.98}} {
		held := 0
		for range trials {
			base, other := make([]float64, pairs), make([]float64, pairs)
			for i := range base {
				base[i] = 100 + 1000*rng.ExpFloat64()
				other[i] = base[i] * (truth + 0.05*rng.NormFloat64())
			}
			d := bootstrap(base, other, 400, rng)
			if d.Low <= truth && truth <= d.High {
				held++
			}
		}
		got := float64(held) / trials
		assert.True(t, share[0] <= got && got <= share[1], "%d pairs: %v of the intervals hold the truth", pairs, got)
	}
}
