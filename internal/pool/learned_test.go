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
	assert.InEpsilon(t, times, f.members[us[0].Address].slowness.times(f.norms.slownesses), 0.1)
}

// TestOneOffProbability checks the probability that a project has only one job: 0 for one that was seen, else the share of
// projects that were not.
func TestOneOffProbability(t *testing.T) {
	f, w := newFixture(t, "random", 1), &witness{}
	f.cfg.Policy = w
	claim := func(project uint64) float64 {
		a := f.must(start, Request{Project: project}, nil)
		answer(a, start)
		return w.job.Once
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
