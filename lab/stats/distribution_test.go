package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
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
