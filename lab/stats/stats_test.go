package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
)

// draws are distributions with very different shapes and ranges.
var draws = map[string]func(*rand.Rand) float64{
	"uniform":    func(rng *rand.Rand) float64 { return rng.Float64() },
	"long tail":  func(rng *rand.Rand) float64 { return math.Exp(3 * rng.NormFloat64()) },
	"half zeros": func(rng *rand.Rand) float64 { return max(0, rng.NormFloat64()) },
	"few values": func(rng *rand.Rand) float64 { return float64(rng.IntN(4)) },
	"wide":       func(rng *rand.Rand) float64 { return math.Pow(10, 17*rng.Float64()-8) },
	"falling":    func() func(*rand.Rand) float64 { v := 1e9; return func(*rand.Rand) float64 { v *= 0.99; return v } }(),
}

// exact returns the value of rank ceil(q x n) of sorted values.
func exact(sorted []float64, q float64) float64 {
	return sorted[max(1, int(math.Ceil(q*float64(len(sorted)))))-1]
}

func TestDistributionAgreesWithSorting(t *testing.T) {
	for name, draw := range draws {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 7))
			for _, n := range []int{1, 2, 3, 10, 2000} {
				d := NewDistribution()
				values := make([]float64, n)
				for i := range values {
					values[i] = draw(rng)
					d.Add(values[i])
				}
				slices.Sort(values)
				for _, q := range []float64{0, 0.01, 0.5, 0.9, 0.95, 0.99, 0.999, 1} {
					want := exact(values, q)
					if want < zero {
						want = 0
					}
					assert.InDelta(t, want, d.quantile(q), 0.00500001*want, "quantile %v of %d", q, n)
				}
				mean := 0.0
				for _, v := range values {
					mean += v / float64(n)
				}
				assert.InEpsilon(t, mean+1, d.Summary().Mean+1, 1e-9)
				assert.Equal(t, values[0], d.smallest)
				assert.Equal(t, values[n-1], d.Summary().Max)
				assert.Equal(t, uint64(n), d.Summary().Count)
			}
		})
	}
}

func TestMergeEqualsAddingAll(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for name, draw := range draws {
		all, merged := NewDistribution(), NewDistribution()
		for _, n := range []int{0, 1, 500, 0, 30} {
			part := NewDistribution()
			for range n {
				v := draw(rng)
				all.Add(v)
				part.Add(v)
			}
			merged.merge(part)
		}
		a, b := all.Summary(), merged.Summary()
		assert.InEpsilon(t, a.Mean, b.Mean, 1e-9, name)
		a.Mean, b.Mean = 0, 0
		assert.Equal(t, a, b, name)
	}
}

func TestDistributionPanicsOnInvalidValues(t *testing.T) {
	for _, v := range []float64{-1e-12, math.NaN(), math.Inf(1)} {
		assert.Panics(t, func() { NewDistribution().Add(v) }, "%v", v)
	}
}

func TestSlowdown(t *testing.T) {
	assert.Equal(t, 0.0, slowdownOf(0, 0))
	assert.Equal(t, 0.0, slowdownOf(0, 5))
	assert.Equal(t, 0.75, slowdownOf(3, 1))
	assert.Equal(t, 1.0, slowdownOf(3, 0))
}

func TestRunSeparatesPriorities(t *testing.T) {
	r, other := NewRun(), NewRun()
	r.Add(selection.High, 100, 100)
	r.Add(selection.Low, 1, 1)
	r.Add(selection.Low, 3, 1)
	other.Add(selection.Low, 5, 5)
	other.Add(selection.Low, 9, 0)
	r.Merge(other)

	assert.Equal(t, 200.0, r.Summary(selection.High, Duration).Max)
	assert.Equal(t, 4.5, r.Summary(selection.Low, Wait).Mean)
	assert.Equal(t, 6.25, r.Summary(selection.Low, Duration).Mean)
	assert.InDelta(t, (0.5+0.75+0.5+1)/4, r.Summary(selection.Low, Slowdown).Mean, 1e-12)
	assert.Equal(t, uint64(1), r.Summary(selection.High, Slowdown).Count)
	r.AddStalled(selection.High, 1, 8, 6)
	assert.Equal(t, 7.0, r.Summary(selection.High, AllWaits).Median)
	assert.InDelta(t, (2+(1+6+2)/2.0)/2, r.Summary(selection.High, Stretch).Mean, 1e-9)
}

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

// TestRatioHoldsTheTruth counts how often the interval contains the true ratio of pairs that
// differ far more from each other than their ratios do.
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

func TestNumbersForPeople(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1_234_567: "1,234,567"} {
		assert.Equal(t, want, Thousands(n))
	}
	for seconds, want := range map[float64]string{0: "0s", 59.6: "1m", 61: "1m1s", 3600: "1h", 3660: "1h1m", 86_401: "24h0m1s"} {
		assert.Equal(t, want, Span(seconds))
	}
}

// The variance equals the naive formula's, also after a merge.
func TestMoments(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var one Moments
	var parts [3]Moments
	sum, squares := 0.0, 0.0
	for i := range 1000 {
		v := 100 + rng.ExpFloat64()*float64(1+i%7)
		one.Add(v)
		parts[i%2].Add(v)
		sum, squares = sum+v, squares+v*v
	}
	want := squares/1000 - sum/1000*sum/1000
	assert.InEpsilon(t, want, one.Variance(), 1e-9)
	for _, part := range parts[1:] {
		parts[0].Merge(part)
	}
	assert.InEpsilon(t, want, parts[0].Variance(), 1e-9)
	assert.Zero(t, parts[2].Variance())
}
