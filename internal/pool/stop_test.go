package pool

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
)

// No policy sends a new job to an upstream in the last 30 s before its stop, unless all stop.
func TestNothingNewBeforeAStop(t *testing.T) {
	for _, policy := range selection.Names() {
		for _, n := range []int{6, 100} {
			f, rng := newFixture(t, policy, 0), rand.New(rand.NewPCG(uint64(n), 1))
			us, stops := upstreams(n), map[string]time.Time{}
			for i := range us[1:] {
				us[i].StopsAt = start.Add(time.Duration(rng.IntN(120_000)) * time.Millisecond)
				stops[us[i].Address] = us[i].StopsAt
			}
			f.Set(start, us)
			claimed := 0
			for now := start; now.Before(start.Add(2 * time.Minute)); now = now.Add(time.Second) {
				for _, u := range us[:min(n, 12)] {
					f.Report(now, u.Address, report(now, float64(rng.IntN(16)), 0, 1, 2, 3))
				}
				a := f.must(now, Request{Project: rng.Uint64N(9), Priority: selection.Priority(rng.IntN(2)), Fallbacks: 2}, nil)
				for _, address := range append(a.Fallbacks, a.Address) {
					if at, stop := stops[address]; stop {
						require.Greater(t, at.Sub(now), 30*time.Second, "%s: %s", policy, address)
						claimed++
					}
				}
				answer(a, now)
			}
			assert.Positive(t, claimed, "before that they get jobs")
		}
	}
}

// The reason says when an upstream stops. A job does not wait for one that stops soon, unless all do.
func TestAnUpstreamThatStopsSoon(t *testing.T) {
	f, us := newFixture(t, "expected", 0), upstreams(2)
	us[1].StopsAt = start.Add(time.Minute)
	f.Set(start, us)
	both := places([]string{us[0].Address})
	require.False(t, f.AllTried(start.Add(29*time.Second), both, false))
	now := start.Add(48 * time.Second)
	assert.True(t, f.AllTried(now, both, false))
	s := f.state(now, us[1].Address)
	assert.Equal(t, []any{Stopping, "stops in 12 s", false, true}, []any{s.Reason, s.Why, s.Eligible, s.Leaves()})
	f.Drain(us[0].Address, true)
	assert.Equal(t, us[1].Address, f.must(now, Request{}, []string{us[0].Address}).Address, "both leave")
}

// The weight of an upstream that joins again grows, so that it gets its projects one after another.
func TestAnUpstreamThatComesBack(t *testing.T) {
	f, w, us := newFixture(t, "random", 2), &witness{}, upstreams(2)
	f.cfg.Policy = w
	f.Set(start.Add(time.Minute), us[:1])
	back := start.Add(2 * time.Minute)
	f.Set(back, us)
	for after, want := range map[time.Duration]float64{0: 0.1, 15 * time.Second: 0.5, 30 * time.Second: 1, time.Hour: 1} {
		f.must(back.Add(after), Request{}, nil)
		assert.Equal(t, []float64{1, want}, []float64{w.views[0].Weight, w.views[1].Weight}, "after %v", after)
	}
}
