package quality

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
)

func TestPointsAreOfAnHour(t *testing.T) {
	m := New(start, Default())
	now := start
	assert.Empty(t, m.Points(now))
	for i := range 2 * 60 * 60 {
		now = start.Add(time.Duration(i) * time.Second)
		for range 1 + i/3600 {
			m.Ended(now, served(selection.Low, time.Second, time.Second))
		}
		m.Advance(now, Moment{InFlight: i, Waiting: 7})
	}
	points := m.Points(now)
	require.Len(t, points, int(steps)-1, "the present one is not over")
	first, last := points[0], points[len(points)-1]
	assert.Equal(t, []int64{start.Unix() + 3610, start.Unix() + 7190}, []int64{first.At, last.At})
	assert.Equal(t, []int{3609, 7189, 7}, []int{first.InFlight, last.InFlight, last.Waiting})
	assert.InDelta(t, 2, last.Jobs, 0.05)
	assert.InDelta(t, 1, last.FirstByteP50, 0.05)
	assert.Zero(t, last.Failed+last.Lost)

	m.Advance(now.Add(time.Hour), Moment{})
	assert.Empty(t, m.Points(now.Add(time.Hour)), "nobody looked for an hour")
}

// The time to first byte without load is that of the calmest tenth, once the first
// minute is over.
func TestUnloaded(t *testing.T) {
	var points []Point
	add := func(n int, p50 float64) {
		for range n {
			points = append(points, Point{FirstByteP50: p50})
		}
	}
	assert.Zero(t, unloaded(points))
	add(1, 0.001)
	assert.Equal(t, time.Millisecond, unloaded(points))
	add(5, 0.5)
	add(18, 2)
	add(1, 0) // without a job
	add(1, 1)
	add(1, 1.5)
	assert.Equal(t, 1500*time.Millisecond, unloaded(points), "the second least of twenty")
}
