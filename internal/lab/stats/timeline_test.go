package stats

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTimelineAveragesOverTime(t *testing.T) {
	l := NewTimeline(4)
	assert.Empty(t, l.Points())
	l.Set(0, 10)
	l.Set(0.5, 20)
	l.Set(3, 0)
	assert.Equal(t, []Point{{0, 15}, {1, 20}, {2, 20}}, l.Points())
	l.Set(3.5, 8)
	assert.Equal(t, []Point{{0, 15}, {1, 20}, {2, 20}, {3, 0}}, l.Points())
	l.Set(7, 1) // more than 4 stretches: of 2 s from here on
	assert.Equal(t, []Point{{0, 17.5}, {2, 12}, {4, 8}, {6, 8}}, l.Points())
	assert.InDelta(t, (5+50+0+28)/7.0, l.Mean(), 1e-12)
}

// TestTimelineKeepsTheIntegral compares with the sum over the steps.
func TestTimelineKeepsTheIntegral(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	l := NewTimeline(16)
	at, value, area := 0.0, 0.0, 0.0
	for range 2000 {
		step := 10 * rng.ExpFloat64()
		area += value * step
		at += step
		value = rng.Float64()
		l.Set(at, value)
		require.LessOrEqual(t, len(l.Points()), 16)
	}
	assert.InEpsilon(t, area/at, l.Mean(), 1e-9)
	sum := 0.0
	points := l.Points()
	for i, p := range points {
		end := at
		if i+1 < len(points) {
			end = points[i+1].At
		}
		sum += p.Value * (end - p.At)
	}
	assert.InEpsilon(t, area, sum, 1e-9)
}

func TestTimelineRefusesThePast(t *testing.T) {
	l := NewTimeline(2)
	l.Set(5, 1)
	assert.Panics(t, func() { l.Set(4.9, 1) })
	assert.Panics(t, func() { NewTimeline(1) })
}

func TestImbalance(t *testing.T) {
	even := NewImbalance(3, 8)
	assert.Zero(t, even.Relative())
	even.Set(0, []float64{4, 4, 4})
	even.Set(10, []float64{0, 0, 0})
	even.Set(20, []float64{0, 0, 0})
	assert.Zero(t, even.Relative())

	one := NewImbalance(3, 8)
	one.Set(0, []float64{0, 9, 0})
	one.Set(10, []float64{0, 0, 0})
	one.Set(20, []float64{0, 0, 0})
	assert.InDelta(t, 2*(1-1/3.0), one.Relative(), 1e-12)
	assert.InDelta(t, 2, one.Distance().Mean(), 1e-12, "4 for half the time")
	assert.Panics(t, func() { one.Set(30, []float64{1}) })
}
