package pool

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
)

// served runs jobs of many projects, each at one or two upstreams, and returns the slow upstreams. The durations of projects
// differ by up to a factor of 1,000. At the sick upstream, which has the longer projects, they are multiplied by factor.
func (f *fixture) served(t *testing.T, rng *rand.Rand, jobs int, sick string, factor float64) (slow []string) {
	us := upstreams(f.Len())
	for range jobs {
		project := 1 + rng.Uint64N(uint64(20*len(us)))
		at := us[(int(project)+rng.IntN(1+int(project%2)))%len(us)].Address
		a := f.must(start, Request{Project: project, Among: places([]string{at})}, nil)
		a.Cache, a.idle = selection.Cached, true
		took := 0.01 * math.Pow(1000, float64(project%17)/16) * rng.ExpFloat64()
		if at == sick {
			took *= factor
		}
		now := start.Add(time.Duration(took * float64(time.Second)))
		answer(a, now)
	}
	for _, s := range f.States(start) {
		if s.Slow != "" {
			slow = append(slow, s.Address)
		}
	}
	return slow
}

// Only the upstream that takes ten times as long as before is slow, until it works as before.
func TestASlowUpstream(t *testing.T) {
	for seed := range uint64(20) {
		for _, n := range []int{2, 3, 14} {
			if n == 14 && seed >= 8 {
				continue // many upstreams take long, and differ little
			}
			f, rng := newFixture(t, "random", n), rand.New(rand.NewPCG(seed, 3))
			sick := upstreams(n)[int(seed)%n].Address
			require.Empty(t, f.served(t, rng, 500*n, sick, 1), "seed %d, %d upstreams", seed, n)
			require.Equal(t, []string{sick}, f.served(t, rng, 500*n, sick, 10), "seed %d, %d upstreams", seed, n)
			require.Empty(t, f.served(t, rng, 500*n, sick, 1), "seed %d, %d upstreams: again", seed, n)
			require.Empty(t, f.served(t, rng, 500*n, sick, 1.5), "seed %d, %d upstreams: a little slower", seed, n)
		}
	}
}

// The ratio in words is near the true one, and responses of 500 do not count: they begin at once.
func TestSlownessInWords(t *testing.T) {
	f, us := newFixture(t, "random", 3), upstreams(3)
	rng := rand.New(rand.NewPCG(1, 3))
	f.served(t, rng, 2000, us[0].Address, 1)
	f.served(t, rng, 2000, us[0].Address, 10)
	why := f.States(start)[0].Slow
	_, why, _ = strings.Cut(why, "first byte is ")
	times, err := strconv.ParseFloat(strings.Fields(why)[0], 64)
	require.NoError(t, err)
	assert.InDelta(t, 10, times, 4)
	for range 100 {
		for _, u := range us[1:] {
			a := f.must(start, Request{Project: 1, Among: places([]string{u.Address})}, nil)
			a.Answered(start, false, nil)
			a.Done(start, Failed)
		}
		f.shut(us[1].Address, false)
		f.shut(us[2].Address, false)
	}
	assert.InEpsilon(t, times, f.members[us[0].Address].slowness.ratio(f.norms.slownesses), 0.1)
}

// TestOneOffProbability checks the probability that a project has only one job: 0 for one that was seen, else the share of
// projects that were not.
func TestOneOffProbability(t *testing.T) {
	f, w := newFixture(t, "random", 1), &witness{}
	f.cfg.Policy = w
	claim := func(project uint64) float64 {
		a := f.must(start, Request{Project: project}, nil)
		answer(a, start)
		return w.job.OneOffProbability
	}
	assert.InDelta(t, 0.5, claim(1), 0.1, "nothing is known")
	assert.Zero(t, claim(1), "it came again")
	for project := range uint64(300) {
		claim(project + 10)
	}
	assert.Greater(t, claim(2), 0.9)
	assert.Zero(t, claim(2))
	for range 300 {
		claim(2)
	}
	assert.Less(t, claim(3), 0.1)
}

// TestHowLongJobsTake checks the expected durations. They are learned from start to end without the fetch, if the start is
// known. A fetch is added, and a job of an unknown project takes as long as all jobs do on average.
func TestHowLongJobsTake(t *testing.T) {
	f := newFixture(t, "least-in-flight", 1)
	run := func(project uint64, took time.Duration, hint *Hint) float64 {
		a := f.must(start, Request{Project: project}, nil)
		if hint != nil {
			a.Answered(start.Add(max(0, took-time.Second)), true, hint)
		}
		a.Done(start.Add(took), Answered)
		return a.Expected
	}
	waited := func(d time.Duration) *Hint { return &Hint{Known: true, Cached: true, Waited: d} }
	assert.Zero(t, run(1, 14*time.Second, nil), "nothing is known")
	assert.Zero(t, run(1, 14*time.Second, waited(4*time.Second)), "the wait is unknown")
	assert.Positive(t, run(1, time.Second, nil))
	for range 20 {
		run(1, 14*time.Second, waited(4*time.Second))
	}
	assert.InDelta(t, 10, run(1, time.Second, nil), 2)
	assert.InDelta(t, 10, run(0, time.Second, nil), 2, "a job without a project")
	assert.InDelta(t, 10+unsizedPrior, run(2, time.Second, nil), 2, "a project that is not known, with its fetch")
	for range 20 {
		run(3, 2*time.Second, waited(0))
		f.members[f.set[0].Address].cached.assumed.Drop(3)
		run(3, 7*time.Second, &Hint{Known: true})
	}
	assert.InDelta(t, 2, run(3, time.Second, nil), 0.5, "without a fetch")
	f.members[f.set[0].Address].cached.assumed.Drop(3)
	assert.InDelta(t, 2+5, run(3, time.Second, nil), 1.5, "with one")
	run(3, 100*time.Second, waited(0))
	assert.Less(t, run(3, time.Second, nil), 3.0, "one long job of many changes little")
	run(4, 0, waited(0))
	assert.Positive(t, run(4, time.Second, nil), "nothing takes no time")
	var text *Assignment
	for range 20 {
		text = f.must(start, chain(7, 8), nil)
		text.Answered(start.Add(3*time.Second), true, waited(0))
		text.Done(start.Add(5*time.Second), Answered)
	}
	assert.InDelta(t, 2, text.Expected, 0.5, "of a prompt, from the first byte on")
}

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
		before.fillNeed(&n, &r, false)
		after.fillNeed(&m, &r, false)
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
		"16385 learned durations: at most 16384 are allowed":                                       append(list, Length{Project: 1, Seconds: 1, Jobs: 1}),
		"learned duration 2 has 0 seconds and 1 jobs: both must be above 0 and at most 1e+09":      {{Seconds: 1, Jobs: 1}, {Jobs: 1}},
		"learned duration 1 has -1 seconds and 1 jobs: both must be above 0 and at most 1e+09":     {{Seconds: -1, Jobs: 1}},
		"learned duration 1 has 1 seconds and 1e+10 jobs: both must be above 0 and at most 1e+09":  {{Seconds: 1, Jobs: 1e10}},
		"learned duration 1 has 1e+300 seconds and 1 jobs: both must be above 0 and at most 1e+09": {{Seconds: 1e300, Jobs: 1}},
		"learned duration 1 has 1 seconds and 0 jobs: both must be above 0 and at most 1e+09":      {{Seconds: 1}},
	} {
		empty := newFixture(t, "least-in-flight", 1)
		require.EqualError(t, empty.SetLengths(bad), want)
		assert.Zero(t, empty.lengths.all.n-1, "nothing of it is used")
		assert.Len(t, empty.Lengths(), 1)
	}
}
