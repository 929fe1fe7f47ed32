package quality

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A sample stands for more jobs where many come, and for one again where few do.
func TestTrendCountsTheJobsOfItsSamples(t *testing.T) {
	var tr trend
	at := time.Duration(0)
	add := func(n int, every time.Duration) {
		for range n {
			at += every
			tr.add(sample{arrived: at, firstByte: time.Second})
		}
	}
	add(1000, 10*time.Millisecond)
	got, ok := tr.at(at + time.Second)
	require.True(t, ok)
	assert.InDelta(t, 1000, got.Jobs, 2*float64(tr.each)+100, "but for those that have had no time")
	assert.Greater(t, tr.each, 4)
	add(3000, 2*time.Second)
	assert.Equal(t, 1, tr.each)
	_, ok = tr.at(at + time.Second + maxAge)
	assert.False(t, ok, "what was five minutes ago says nothing of now")
}

// A trial is judged as it would have been while it ran, through days without a job.
func TestTrialPassesOverIdleTimes(t *testing.T) {
	jobs := ramp(60, func(float64) float64 { return 1 })
	for _, j := range ramp(60, func(float64) float64 { return 1 }) {
		j.Arrived = j.Arrived.Add(24 * time.Hour)
		jobs = append(jobs, j)
	}
	changes := Trial(jobs, func(int) time.Duration { return 0 })
	require.Equal(t, []Mode{Flat, Unknown, Flat}, modes(changes))
	assert.WithinDuration(t, since(60).Add(maxAge), changes[1].At, 2*time.Second)
}
