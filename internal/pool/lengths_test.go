package pool

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lengthOf runs a job that takes so long, and returns what was expected of it.
func (f *fixture) lengthOf(r Request, took time.Duration) float64 {
	a := f.must(start, r, nil)
	a.Answered(start.Add(took), true, &Hint{Known: true, Cached: true})
	a.Done(start.Add(took), Answered)
	return a.Expected
}

// Durations are learned by length key. A job with a new key has the duration of its project, one of a new project that of all.
func TestLengthsByKey(t *testing.T) {
	f := newFixture(t, "least-in-flight", 1)
	for range 40 {
		f.lengthOf(Request{Project: 1, LengthKey: 1}, time.Second)
		f.lengthOf(Request{Project: 1, LengthKey: 2}, 100*time.Second)
		f.lengthOf(Request{Project: 2, LengthKey: 1}, 20*time.Second)
	}
	for _, c := range []struct {
		project, key uint64
		want         float64
		by           string
	}{
		{1, 1, 1, "length_key"}, {1, 2, 100, "length_key"}, {2, 1, 20, "length_key"}, {1, 3, 10, "project"}, {1, 0, 10, "project"},
		{2, 2, 20, "project"}, {3, 1, math.Cbrt(1 * 100 * 20), "all"},
	} {
		r := Request{Project: c.project, LengthKey: c.key}
		got, err := f.Explain(start, r)
		require.NoError(t, err)
		assert.Equal(t, c.by, got[0].ExpectedBy, c)
		fetch := (1 - got[0].Found) * unsizedPrior
		assert.InEpsilon(t, c.want, got[0].Expected-fetch, 0.35, c)
		assert.InDelta(t, got[0].Expected, f.must(start, r, nil).Expected, 1e-9, "as claimed")
	}
}

// What is learned is the same after a restart. The lists are bounded, and nothing of an invalid one is used.
func TestLengthsOverARestart(t *testing.T) {
	before, rng := newFixture(t, "least-in-flight", 1), rand.New(rand.NewPCG(1, 2))
	requests := make([]Request, 300)
	for i := range requests {
		requests[i] = Request{Project: 1 + rng.Uint64N(50), LengthKey: rng.Uint64N(4)}
		before.lengthOf(requests[i], seconds(math.Exp(3*rng.NormFloat64())))
	}
	after := newFixture(t, "least-in-flight", 1)
	require.NoError(t, after.SetLengths(before.Lengths()))
	for _, r := range requests {
		var n, m need
		before.need(&n, &r, false)
		after.need(&m, &r, false)
		want, by := before.lengths.expected(&n)
		got, same := after.lengths.expected(&m)
		assert.InEpsilon(t, want, got, 1e-9)
		assert.Equal(t, by, same)
	}

	for key := range uint64(3 * savedLengths) {
		before.lengthOf(Request{Project: 1 + key, LengthKey: 1}, time.Second)
	}
	list := before.Lengths()
	assert.Len(t, list, savedLengths)
	require.NoError(t, after.SetLengths(list))

	for want, bad := range map[string][]Length{
		"16385 durations of jobs are more than 16384":                          append(list, Length{Project: 1, Seconds: 1, Jobs: 1}),
		"duration 2 is 0 s of 1 jobs: want more than 0 and at most 1e+09":      {{Seconds: 1, Jobs: 1}, {Jobs: 1}},
		"duration 1 is -1 s of 1 jobs: want more than 0 and at most 1e+09":     {{Seconds: -1, Jobs: 1}},
		"duration 1 is 1 s of 1e+10 jobs: want more than 0 and at most 1e+09":  {{Seconds: 1, Jobs: 1e10}},
		"duration 1 is 1e+300 s of 1 jobs: want more than 0 and at most 1e+09": {{Seconds: 1e300, Jobs: 1}},
		"duration 1 is 1 s of 0 jobs: want more than 0 and at most 1e+09":      {{Seconds: 1}},
	} {
		empty := newFixture(t, "least-in-flight", 1)
		require.EqualError(t, empty.SetLengths(bad), want)
		assert.Zero(t, empty.lengths.all.n-1, "nothing of it is used")
		assert.Len(t, empty.Lengths(), 1)
	}
}
