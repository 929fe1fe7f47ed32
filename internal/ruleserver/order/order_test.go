package order

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBehindIsBounded(t *testing.T) {
	assert.Zero(t, Delay(0, 0, 0, time.Minute))
	assert.Equal(t, 20*time.Second, Delay(2*time.Second, time.Second, 0, time.Minute))
	assert.Equal(t, 30*time.Second, Delay(2*time.Second, 3*time.Second, 0, time.Minute), "it ran longer than expected")
	assert.Equal(t, 25*time.Second, Delay(2*time.Second, 0, 5*time.Second, time.Minute), "its project has others there")
	assert.Equal(t, 54*time.Second, Delay(time.Hour, 0, 0, time.Minute), "nine tenths of the queue timeout")
	assert.Equal(t, 216*time.Second, Delay(0, 0, time.Hour, 0), "no timeout")
}

func TestExpected(t *testing.T) {
	var l Lengths[string]
	assert.Zero(t, l.Expected("p", 0), "nothing is known")
	assert.Equal(t, 2*time.Second, l.Expected("p", 2*time.Second))

	l.Learn("p", 4*time.Second, 0)
	assert.InDelta(t, 4, l.Expected("q", 0).Seconds(), 1e-6, "of other projects, that of all")
	assert.Equal(t, time.Second, l.Expected("q", time.Second), "the duration that its sender sends is better")
	l.Learn("p", 4*time.Second, 0)
	assert.InDelta(t, 4, l.Expected("p", time.Second).Seconds(), 1e-6, "own experience is best")
	for range 100 {
		l.Learn("q", time.Second, 0)
	}
	assert.InDelta(t, 1, l.Expected("q", 0).Seconds(), 0.1)
	assert.Greater(t, l.Expected("p", 0), 2*time.Second)
}

// The sender's durations are used while they were more accurate than the means of the projects.
func TestSenderIsUsedWhileMoreAccurate(t *testing.T) {
	var l Lengths[string]
	job := func(took, sent time.Duration) { l.Learn("p", took, sent) }
	for i := range comparedJobs {
		took := []time.Duration{time.Second, 9 * time.Second}[i%2] // two kinds of jobs, which the sender distinguishes
		job(took, took)
		want := i >= comparedJobs/2
		assert.Equal(t, want, l.Expected("p", 7*time.Second) == 7*time.Second, "after %d jobs", i)
	}
	for range 3 * comparedJobs {
		job(time.Second, time.Minute)
	}
	assert.Less(t, l.Expected("p", 7*time.Second), 2*time.Second)
	assert.Equal(t, 7*time.Second, l.Expected("q", 7*time.Second), "nothing else is known of q")
}

// TestLengthsAreBounded: only projects without a recent job are forgotten.
func TestLengthsAreBounded(t *testing.T) {
	var l Lengths[int]
	for project := range 3 * maxProjects {
		l.Learn(project+1, time.Second, 0)
		l.Learn(0, time.Minute, 0)
		require.LessOrEqual(t, len(l.young)+len(l.old), maxProjects)
	}
	assert.InDelta(t, 60, l.Expected(0, 0).Seconds(), 5)
	assert.Zero(t, l.of(1))
}
