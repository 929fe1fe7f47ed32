package discovery

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPacerKeepsToOneQueryASecond(t *testing.T) {
	rng := seeded()
	p, now := &pacer{pace: pace{gap: time.Second, retryMax: 10 * time.Second}, rng: seeded()}, epoch
	before := epoch.Add(-time.Minute)
	for range 10_000 {
		soon := time.Duration(max(0, rng.IntN(6000)-4000)) * time.Millisecond
		now = now.Add(p.pause(now, rng.IntN(10) == 0, soon))
		require.GreaterOrEqual(t, now.Sub(before), time.Second)
		before, now = now, now.Add(time.Duration(rng.IntN(3))*500*time.Millisecond) // the reply takes a while
	}
	now = now.Add(time.Minute)
	assert.Zero(t, p.pause(now, false, 0), "after a long wait it asks at once")
	for _, want := range []float64{1, 2, 4, 8, 10, 10, 10} {
		now = now.Add(time.Hour)
		got := p.pause(now, true, 0).Seconds()
		assert.GreaterOrEqual(t, got, want)
		assert.LessOrEqual(t, got, want*(1+spread))
	}
	p.pause(now.Add(time.Hour), false, 0)
	assert.Less(t, p.pause(now.Add(2*time.Hour), true, 0), 2*time.Second, "a success forgets the failures")
}

func TestPacerSpreadsAndHastens(t *testing.T) {
	p, now := &pacer{pace: pace{gap: 10 * time.Second, retryMax: 10 * time.Second}, rng: seeded()}, epoch
	seen := map[time.Duration]bool{}
	p.pause(now, false, 0)
	for range 50 {
		d := p.pause(now, false, 0)
		assert.GreaterOrEqual(t, d, 10*time.Second)
		assert.LessOrEqual(t, d, 12*time.Second)
		seen[d] = true
		now = now.Add(d)
	}
	assert.Greater(t, len(seen), 40)
	assert.Equal(t, 3*time.Second, p.pause(now, false, 3*time.Second))
	assert.Equal(t, time.Second, p.pause(now.Add(3*time.Second), false, time.Millisecond), "but not below the shortest gap")
}
