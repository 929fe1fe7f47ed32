package scenario

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/lab/sim"
)

// An upstream is overloaded with more stalled joblets than the limit. What never
// changes is left out.
func TestHistory(t *testing.T) {
	history := func(up bool, level float64) (overloaded, away, levels [][]float64) {
		tl := newTimelines(2, 5)
		for second := range 3 {
			tl.add(&sim.Sample{
				At:      time.Duration(second) * time.Second,
				Stalled: []int{5, 6}, Busy: []int{1, 1}, Up: []bool{true, up}, Level: []float64{1, level},
			})
		}
		h := tl.history()
		assert.Equal(t, 1.0, h.Stretch)
		assert.Equal(t, 2.0, h.End)
		assert.Equal(t, []float64{5.5, 5.5}, h.Backlog)
		assert.Equal(t, []float64{0.5, 0.5}, h.Distance)
		return h.Overloaded, h.Away, h.Level
	}
	overloaded, away, level := history(true, 1)
	assert.Equal(t, [][]float64{{0, 0}, {1, 1}}, overloaded)
	assert.Nil(t, away)
	assert.Nil(t, level)
	_, away, level = history(false, 0.25)
	assert.Equal(t, [][]float64{{0, 0}, {1, 1}}, away)
	assert.Equal(t, [][]float64{{1, 1}, {0.25, 0.25}}, level)
}

// The closeup is where the levels move most, of the upstreams whose levels move most there.
func TestCloseup(t *testing.T) {
	levels := make([][]float32, closeupUpstreams+2)
	for i := range levels {
		levels[i] = make([]float32, 1000)
		for n := range levels[i] {
			levels[i][n] = 1
			if n >= 400 && n < 500 && n%2 == 0 { // it moves more for later upstreams
				levels[i][n] = 1 - float32(i)/10
			}
		}
	}
	levels[0][900], levels[1][901] = 0.9, 0.9 // later and less
	c := closeup(5, levels)
	require.NotNil(t, c)
	assert.Equal(t, 5.0, c.Step)
	assert.Equal(t, 5*float64(499-closeupSamples+1), c.From)
	assert.Equal(t, []int{2, 3, 4, 5}, c.Upstreams)
	require.Len(t, c.Level, closeupUpstreams)
	assert.Len(t, c.Level[0], closeupSamples)
	assert.Contains(t, c.Level[3], 0.5)

	assert.Nil(t, closeup(5, [][]float32{{1, 1, 1}}))
	assert.Nil(t, closeup(5, nil))
}
