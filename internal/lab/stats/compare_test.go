package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCompare(t *testing.T) {
	base := []float64{10, 20, 30, 40}
	other := []float64{5, 10, 15, 20}
	rng := func() *rand.Rand { return rand.New(rand.NewPCG(1, 1)) }

	ratio, err := Ratio(base, other, CompareConfig{}, rng())
	require.NoError(t, err)
	assert.Equal(t, Interval{0.5, 0.5, 0.5}, ratio, "each pair has the same ratio")

	difference, err := Difference(base, other, CompareConfig{}, rng())
	require.NoError(t, err)
	assert.Equal(t, -12.5, difference.Value)
	assert.Less(t, difference.Low, -15.0)
	assert.Greater(t, difference.High, -10.0)

	again, err := Difference(base, other, CompareConfig{}, rng())
	require.NoError(t, err)
	assert.Equal(t, difference, again, "the same source gives the same interval")

	wider, err := Difference(base, other, CompareConfig{Confidence: 0.99}, rng())
	require.NoError(t, err)
	assert.Less(t, wider.Low, difference.Low)
}

// TestCompareHoldsTheTruth counts how often the interval holds the true
// difference of pairs whose common part is far larger than the difference.
func TestCompareHoldsTheTruth(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	const trials, truth = 400, 1.0
	for pairs, share := range map[int][2]float64{10: {0.85, 0.95}, 40: {0.90, 0.98}} {
		held := 0
		for range trials {
			base, other := make([]float64, pairs), make([]float64, pairs)
			for i := range base {
				base[i] = 1000 * rng.ExpFloat64()
				other[i] = base[i] + truth + rng.NormFloat64()
			}
			d, err := Difference(base, other, CompareConfig{Resamples: 400}, rng)
			require.NoError(t, err)
			if d.Low <= truth && truth <= d.High {
				held++
			}
		}
		got := float64(held) / trials
		assert.True(t, share[0] <= got && got <= share[1], "%d pairs: %v of the intervals hold the truth", pairs, got)
	}
}

func TestCompareRefuses(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	two := []float64{1, 2}
	for want, try := range map[string]func() (Interval, error){
		"stats: 1 values do not pair with 2":                func() (Interval, error) { return Difference(two, []float64{1}, CompareConfig{}, rng) },
		"stats: 1 pairs are fewer than 2":                   func() (Interval, error) { return Difference(two[:1], two[:1], CompareConfig{}, rng) },
		"stats: a confidence of 1 is not between 0 and 1":   func() (Interval, error) { return Difference(two, two, CompareConfig{Confidence: 1}, rng) },
		"stats: a confidence of NaN is not between 0 and 1": func() (Interval, error) { return Difference(two, two, CompareConfig{Confidence: math.NaN()}, rng) },
		"stats: 9 resamples are fewer than 100":             func() (Interval, error) { return Difference(two, two, CompareConfig{Resamples: 9}, rng) },
		"stats: a ratio to values that are not all above 0": func() (Interval, error) { return Ratio([]float64{0, 1}, two, CompareConfig{}, rng) },
	} {
		_, err := try()
		assert.EqualError(t, err, want)
	}
}
