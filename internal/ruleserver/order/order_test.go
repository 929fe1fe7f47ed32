package order

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBehindIsBounded(t *testing.T) {
	assert.Zero(t, Behind(0, 0, 0, time.Minute))
	assert.Equal(t, 20*time.Second, Behind(2*time.Second, time.Second, 0, time.Minute))
	assert.Equal(t, 30*time.Second, Behind(2*time.Second, 3*time.Second, 0, time.Minute), "it ran longer than expected")
	assert.Equal(t, 25*time.Second, Behind(2*time.Second, 0, 5*time.Second, time.Minute), "its project has others there")
	assert.Equal(t, 54*time.Second, Behind(time.Hour, 0, 0, time.Minute), "nine tenths of the queue timeout")
	assert.Equal(t, 216*time.Second, Behind(0, 0, time.Hour, 0), "no timeout")
}

func TestExpected(t *testing.T) {
	var l Lengths[string]
	assert.Zero(t, l.Expected("p", 0), "nothing is known")
	assert.Equal(t, 2*time.Second, l.Expected("p", 2*time.Second))

	l.Learn("p", 4*time.Second)
	assert.InDelta(t, 4, l.Expected("q", 0).Seconds(), 1e-6, "of other projects, that of all")
	assert.Equal(t, time.Second, l.Expected("q", time.Second), "what its sender says is better")
	l.Learn("p", 4*time.Second)
	assert.InDelta(t, 4, l.Expected("p", time.Second).Seconds(), 1e-6, "own experience is best")
	for range 100 {
		l.Learn("q", time.Second)
	}
	assert.InDelta(t, 1, l.Expected("q", 0).Seconds(), 0.1)
	assert.Greater(t, l.Expected("p", 0), 2*time.Second)
}

// TestLengthsAreBounded: projects that sent no job for long are forgotten, others not.
func TestLengthsAreBounded(t *testing.T) {
	var l Lengths[int]
	for project := range 3 * maxProjects {
		l.Learn(project+1, time.Second)
		l.Learn(0, time.Minute)
		require.LessOrEqual(t, len(l.young)+len(l.old), maxProjects)
	}
	assert.InDelta(t, 60, l.Expected(0, 0).Seconds(), 5)
	assert.Zero(t, l.of(1))
}
