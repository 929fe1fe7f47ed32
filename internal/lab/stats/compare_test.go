package stats

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRatio(t *testing.T) {
	base := []float64{10, 20, 30, 40}
	rng := func() *rand.Rand { return rand.New(rand.NewPCG(1, 1)) }

	ratio, err := Ratio(base, []float64{5, 10, 15, 20}, rng())
	require.NoError(t, err)
	assert.Equal(t, Interval{0.5, 0.5, 0.5}, ratio, "each pair has the same ratio")

	ratio, err = Ratio(base, []float64{10, 10, 10, 10}, rng())
	require.NoError(t, err)
	assert.Equal(t, 0.4, ratio.Value)
	assert.Less(t, ratio.Low, 0.35)
	assert.Greater(t, ratio.High, 0.5)

	again, err := Ratio(base, []float64{10, 10, 10, 10}, rng())
	require.NoError(t, err)
	assert.Equal(t, ratio, again, "the same source gives the same interval")
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

func TestRatioRefuses(t *testing.T) {
	for want, pair := range map[string][2][]float64{
		"stats: 1 values do not pair with 2":                {{1, 2}, {1}},
		"stats: 1 pairs are fewer than 2":                   {{1}, {1}},
		"stats: a ratio to values that are not all above 0": {{0, 1}, {1, 2}},
	} {
		_, err := Ratio(pair[0], pair[1], rand.New(rand.NewPCG(1, 1)))
		assert.EqualError(t, err, want)
	}
}
