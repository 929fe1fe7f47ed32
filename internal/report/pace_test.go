package report

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// An upstream that fails after it has reported is asked again soon, a few times, and
// with less time to respond.
func TestAnUpstreamThatStopsReportingIsAskedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.answer = func(r *http.Request) (*http.Response, error) {
			if since := time.Since(f.begun); since > 20*time.Second && since < 60*time.Second {
				return nil, after(r, time.Hour)
			}
			return well(r)
		}
		f.during(t, func() {
			f.Follow([]string{"hangs:1"})
			time.Sleep(80 * time.Second)
		})
		asked := f.asked["hangs:1"]
		first := slices.IndexFunc(asked, func(at time.Duration) bool { return at > 20*time.Second })
		assert.Equal(t, 2*time.Second, asked[first+1]-asked[first], "the first poll has its time")
		assert.Equal(t, time.Second, asked[first+2]-asked[first+1])
		assert.Equal(t, time.Second, asked[first+3]-asked[first+2])
		assert.GreaterOrEqual(t, asked[first+4]-asked[first+3], 4*time.Second, "not for ever")
		errs := f.errs["hangs:1"]
		assert.Equal(t, []string{"upstream hangs:1: metrics: no complete response within 2s", "upstream hangs:1: metrics: no complete response within 1s"}, slices.Compact(errs[:4]))
		assert.Equal(t, "upstream hangs:1: metrics: no complete response within 2s", errs[4])
		last := f.reports["hangs:1"][len(f.reports["hangs:1"])-1]
		assert.Greater(t, last.At.Sub(f.begun), 60*time.Second)
	})
}

func TestAskPollsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.answer = well
		f.Ask("a:1") // nobody follows it yet
		f.during(t, func() {
			f.Follow([]string{"a:1", "b:1"})
			time.Sleep(20 * time.Second)
			synctest.Wait()
			polls := len(f.asked["a:1"])
			others := len(f.asked["b:1"])
			f.Ask("a:1")
			f.Ask("a:1")
			f.Ask("unknown:1")
			synctest.Wait()
			assert.Greater(t, len(f.asked["a:1"]), polls)
			assert.Len(t, f.asked["b:1"], others)
			f.Follow([]string{"b:1"})
			synctest.Wait()
			f.Ask("a:1")
		})
		assert.Equal(t, 20*time.Second, f.asked["a:1"][len(f.asked["a:1"])-1])
	})
}

// TestPauseSpreadsOverItsRange draws so often that some draws are near the ends of
// each range.
func TestPauseSpreadsOverItsRange(t *testing.T) {
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
			d := pause(c.n, interval, rng)
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
