package discovery

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func pacerOf(p pace) *pacer { return &pacer{pace: p, rng: seeded()} }

func consulPacer() *pacer {
	return pacerOf(pace{gap: time.Second, saved: 1, retryMax: 10 * time.Second})
}

func TestPacerKeepsToOneQueryASecond(t *testing.T) {
	rng := seeded()
	for range 200 {
		p, now := consulPacer(), epoch
		var asked []time.Time
		for range 100 {
			var soon time.Duration
			if rng.IntN(3) == 0 {
				soon = time.Duration(rng.IntN(2000)) * time.Millisecond
			}
			now = now.Add(p.pause(now, rng.IntN(10) == 0, soon))
			asked = append(asked, now)
			now = now.Add(time.Duration(rng.IntN(3)) * 500 * time.Millisecond) // the reply takes a while
		}
		beyond := 0.0 // one query a second
		for i := range asked {
			for j := i + 1; j < len(asked); j++ {
				beyond = max(beyond, float64(j-i)-asked[j].Sub(asked[i]).Seconds())
			}
		}
		require.LessOrEqual(t, beyond, 1.001, "in any span, at most the one saved up")
	}
}

func TestPacerAsksAtOnceAfterALongWait(t *testing.T) {
	p := consulPacer()
	assert.Zero(t, p.pause(epoch, false, 0))
	assert.Zero(t, p.pause(epoch.Add(time.Minute), false, 0))
	assert.Less(t, p.pause(epoch.Add(time.Minute), false, 0), 200*time.Millisecond, "one query was saved up")
	assert.GreaterOrEqual(t, p.pause(epoch.Add(time.Minute), false, 0), time.Second)
}

func TestPacerBacksOffFromOneSecondToTen(t *testing.T) {
	p, now := consulPacer(), epoch
	p.pause(now, false, 0)
	for _, want := range []float64{1, 2, 4, 8, 10, 10, 10} {
		now = now.Add(time.Hour)
		got := p.pause(now, true, 0).Seconds()
		assert.GreaterOrEqual(t, got, want)
		assert.LessOrEqual(t, got, want*(1+spread))
	}
	p.pause(now.Add(time.Hour), false, 0)
	assert.Less(t, p.pause(now.Add(2*time.Hour), true, 0), 2*time.Second, "a success forgets the failures")
}

func TestPacerSpreads(t *testing.T) {
	p, now := pacerOf(pace{gap: 10 * time.Second, retryMax: 10 * time.Second}), epoch
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
}

func TestPacerHastensAPoll(t *testing.T) {
	p := pacerOf(pace{gap: 10 * time.Second, retryMax: 10 * time.Second})
	p.pause(epoch, false, 0)
	assert.Equal(t, 3*time.Second, p.pause(epoch, false, 3*time.Second))
	assert.Equal(t, time.Second, p.pause(epoch.Add(3*time.Second), false, time.Millisecond), "but not below the shortest gap")
}
