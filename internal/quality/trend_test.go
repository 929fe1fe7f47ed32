package quality

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A sample stands for more jobs where many come, and for one where few do.
func TestTrendCountsTheJobsOfItsSamples(t *testing.T) {
	var tr trend
	at := time.Duration(0)
	add := func(n int, every time.Duration) {
		for range n {
			at += every
			tr.add(sample{arrived: at, firstByte: time.Second})
		}
	}
	tr.pace(6000)
	add(10_000, 10*time.Millisecond)
	got, ok := tr.at(at + time.Second)
	require.True(t, ok)
	assert.InDelta(t, 6000, got.Jobs, 100, "a minute's")
	assert.InDelta(t, 60, got.Span, 1)
	tr.pace(30)
	add(3000, 2*time.Second)
	got, ok = tr.at(at + time.Second)
	require.True(t, ok)
	assert.InDelta(t, samples, got.Jobs, 2)
	_, ok = tr.at(at + time.Second + maxAge)
	assert.False(t, ok, "what was five minutes ago says nothing of now")
}
