package workload

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/trace"
)

func newRand() *rand.Rand { return rand.New(rand.NewPCG(1, 1)) }

func TestInstantsAreSortedUniforms(t *testing.T) {
	const n = 20_000
	i := instants{rng: newRand(), left: n}
	last, far := 0.0, 0.0
	for k := range n {
		share, ok := i.next()
		require.True(t, ok)
		require.True(t, last <= share && share < 1)
		last = share
		far = max(far, math.Abs(share-float64(k+1)/n))
	}
	_, ok := i.next()
	assert.False(t, ok)
	assert.Less(t, far, 1.95/math.Sqrt(n), "Kolmogorov and Smirnov's distance at 0.1 %")
	assert.Greater(t, far, 0.2/math.Sqrt(n), "too even to be random")
}

func TestChooserFollowsWeights(t *testing.T) {
	var c chooser
	weights := []float64{1, 0, 5, 2, 0}
	for _, w := range weights {
		c.add(w)
	}
	rng := newRand()
	counts := make([]float64, len(weights))
	for range 80_000 {
		counts[c.pick(rng)]++
	}
	for i, w := range weights {
		assert.InDelta(t, 10_000*w, counts[i], 600*min(w, 1), "%d", i)
	}
}

// TestWeightsFollowWhatIsSet changes the weights now and then.
func TestWeightsFollowWhatIsSet(t *testing.T) {
	rng := newRand()
	w := newWeights(5)
	assert.Zero(t, w.pick(rng), "no weight at all")
	for range 20 {
		now := make([]float64, 5)
		sum := 0.0
		for i := range now {
			now[i] = float64(rng.IntN(3))
			w.set(i, now[i])
			sum += now[i]
		}
		require.InDelta(t, sum, w.sum(), 1e-12)
		counts := make([]float64, 5)
		for range 10_000 {
			counts[w.pick(rng)]++
		}
		for i := range now {
			if sum > 0 {
				require.InDelta(t, 10_000*now[i]/sum, counts[i], 250*min(now[i], 1), "%d of %v", i, now)
			}
		}
	}
}

// TestPareto: a half lies below the median, and the tail falls by its index.
func TestPareto(t *testing.T) {
	rng := newRand()
	var values []float64
	for range 40_000 {
		values = append(values, pareto(rng, 3, 1.5))
	}
	assert.InEpsilon(t, 3, quantile(values, 0.5), 0.03)
	assert.InEpsilon(t, 3*math.Pow(5, 1/1.5), quantile(values, 0.9), 0.05)
	assert.InEpsilon(t, 3*math.Pow(50, 1/1.5), quantile(values, 0.99), 0.1)
}

func TestLogNormal(t *testing.T) {
	rng := newRand()
	var values []float64
	for range 20_000 {
		values = append(values, logNormal(rng, 3, 0.5))
	}
	assert.InEpsilon(t, 3, quantile(values, 0.5), 0.03)
	assert.InEpsilon(t, 3*math.Exp(0.5*1.2816), quantile(values, 0.9), 0.03)
}

func TestCurveSpreadsByTheHour(t *testing.T) {
	h := Hours{22: 1, 23: 3, 1: 4}
	c := h.curve(3.5*hour, 22) // 1, 3, 0 and half of 4
	for share, want := range map[float64]float64{0: 0, 1.0 / 12: 0.5, 1.0 / 6: 1, 1.0 / 3: 4.0 / 3, 5.0 / 6: 3.25, 0.999999999: 3.5, 1: 3.5} {
		assert.InDelta(t, want*hour, c.at(share), 0.001, "share %v", share)
	}
	assert.InDelta(t, 3*hour, c.at(2.0/3+1e-12), 0.001, "an hour of weight 0 is passed over")
}

// TestQueueAgreesWithSorting runs random processes to their end.
func TestQueueAgreesWithSorting(t *testing.T) {
	rng := newRand()
	for range 50 {
		var q queue
		var want, got []float64
		for range rng.IntN(60) {
			at := float64(rng.IntN(20))
			q.push(at, idle{})
			want = append(want, at)
			if rng.IntN(3) == 0 {
				later := at + float64(rng.IntN(20))
				want = append(want, later)
				q.push(later, idle{})
			}
		}
		for len(q.events) > 0 {
			next := q.next()
			got = append(got, next.at)
			if rng.IntN(2) == 0 {
				later := next.at + float64(rng.IntN(9))
				want = append(want, later)
				q.delay(later)
			} else {
				q.drop()
			}
		}
		require.True(t, slices.IsSorted(got))
		slices.Sort(want)
		require.Equal(t, want, got)
	}
}

type idle struct{ process }

func TestQueueBreaksTiesByAge(t *testing.T) {
	var q queue
	for range 20 {
		q.push(1, idle{})
	}
	for i := range 20 {
		require.Equal(t, i+1, q.next().number)
		q.drop()
	}
}

func TestRounding(t *testing.T) {
	assert.Equal(t, 1.234568, rounded(1.2345678))
	assert.Equal(t, 1.234567, instant(1.2345678))
}

var _ process = (*export)(nil)
var _ interface {
	Next() (trace.Job, error)
} = (*Generator)(nil)

func TestFewInstantsAreUniformToo(t *testing.T) {
	rng := newRand()
	first, second := 0.0, 0.0
	for range 20_000 {
		i := instants{rng: rng, left: 2}
		a, _ := i.next()
		b, _ := i.next()
		first += a / 20_000
		second += b / 20_000
	}
	assert.InDelta(t, 1.0/3, first, 0.01)
	assert.InDelta(t, 2.0/3, second, 0.01)
}
