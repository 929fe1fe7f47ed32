package stats

import (
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

func TestSlowdownResolvesTheThesissMedians(t *testing.T) {
	r := NewRun()
	for range 9 {
		r.Add(selection.Low, 0.00005, 0.238)
	}
	r.Add(selection.Low, 99, 1)
	require.InEpsilon(t, 0.00021, r.Summary(selection.Low, Slowdown).Median, 0.002)
	assert.InDelta(t, 0.99, r.Summary(selection.Low, Slowdown).P95, 0.0005)
}
