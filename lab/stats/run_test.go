package stats

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
)

func TestSlowdown(t *testing.T) {
	assert.Equal(t, 0.0, slowdownOf(0, 0))
	assert.Equal(t, 0.0, slowdownOf(0, 5))
	assert.Equal(t, 0.75, slowdownOf(3, 1))
	assert.Equal(t, 1.0, slowdownOf(3, 0))
}

func of(r *Run, q Quantity, p selection.Priority) *Distribution { return r.by[p][q] }

func TestRunSeparatesPrioritiesAndUpstreams(t *testing.T) {
	r := NewRun(3)
	r.Add(Sample{Priority: selection.High, Upstream: 0, Wait: 100, Execution: 100})
	r.Add(Sample{Priority: selection.Low, Upstream: 0, Wait: 1, Execution: 1})
	r.Add(Sample{Priority: selection.Low, Upstream: 0, Wait: 3, Execution: 1})
	r.Add(Sample{Priority: selection.Low, Upstream: 2, Wait: 5, Execution: 5})
	r.Add(Sample{Priority: selection.Low, Upstream: -1, Wait: 9})

	assert.Equal(t, 200.0, of(r, Duration, selection.High).Summary().Max)
	assert.Equal(t, 4.5, of(r, Wait, selection.Low).Summary().Mean)
	assert.Equal(t, 6.25, of(r, Duration, selection.Low).Summary().Mean)
	assert.InDelta(t, (0.5+0.75+0.5+1)/4, of(r, Slowdown, selection.Low).Summary().Mean, 1e-12)

	v := r.WaitVariance("x")
	assert.Equal(t, []float64{1, 0, 0}, v.Upstreams)
	assert.InDelta(t, 8.0/3, v.All, 1e-12, "of 1, 3 and 5: the job that no upstream ran has no wait there")

	var got []string
	for _, row := range r.Rows("x") {
		got = append(got, row.Run+" "+row.Priority+" "+string(row.Quantity))
	}
	assert.Equal(t, []string{
		"x high duration_s", "x low duration_s", "x high wait_s", "x low wait_s",
		"x high slowdown", "x low slowdown",
	}, got)
}

func TestRunsMerge(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	all, a, b := NewRun(4), NewRun(4), NewRun(4)
	for i := range 1000 {
		s := Sample{
			Priority: selection.Priority(rng.IntN(2)), Upstream: rng.IntN(5) - 1,
			Wait: rng.ExpFloat64(), Execution: rng.ExpFloat64(),
		}
		all.Add(s)
		[]*Run{a, b}[i%2].Add(s)
	}
	a = Merged([]*Run{a, b})
	for i, row := range all.Rows("") {
		merged := a.Rows("")[i]
		assert.InEpsilon(t, row.Mean, merged.Mean, 1e-9)
		merged.Mean = row.Mean
		assert.Equal(t, row, merged)
	}
	assert.InDeltaSlice(t, all.WaitVariance("").Upstreams, a.WaitVariance("").Upstreams, 1e-9)
}

func TestSlowdownResolvesTheThesissMedians(t *testing.T) {
	r := NewRun(1)
	for range 9 {
		r.Add(Sample{Wait: 0.00005, Execution: 0.238})
	}
	r.Add(Sample{Wait: 99, Execution: 1})
	require.InEpsilon(t, 0.00021, of(r, Slowdown, selection.Low).Quantile(0.5), 0.002)
	assert.InDelta(t, 0.99, of(r, Slowdown, selection.Low).Quantile(0.95), 0.0005)
}
