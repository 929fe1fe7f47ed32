package report

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestPaceSpreadsOverItsRange draws often enough that the ends of each range are approached.
func TestPaceSpreadsOverItsRange(t *testing.T) {
	const interval, draws = 5 * time.Second, 10_000
	for _, c := range []struct {
		n        int
		low, top time.Duration
	}{
		{0, 0, interval / 10},
		{1, 0, interval},
		{2, 4 * time.Second, 6 * time.Second},
		{1000, 4 * time.Second, 6 * time.Second},
	} {
		rng := rand.New(rand.NewPCG(7, uint64(c.n)))
		least, most, sum := 2*interval, time.Duration(-1), time.Duration(0)
		for range draws {
			d := pace(c.n, interval, rng)
			least, most, sum = min(least, d), max(most, d), sum+d
		}
		width := c.top - c.low
		assert.GreaterOrEqual(t, least, c.low, "poll %d", c.n)
		assert.Less(t, most, c.top, "poll %d", c.n)
		assert.Less(t, least, c.low+width/100, "poll %d", c.n)
		assert.Greater(t, most, c.top-width/100, "poll %d", c.n)
		assert.InDelta(t, float64(c.low+c.top)/2, float64(sum)/draws, float64(width)/50, "poll %d", c.n)
	}
}
