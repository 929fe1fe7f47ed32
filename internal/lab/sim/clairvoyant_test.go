package sim

import (
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/pkg/selection/rivals"
	"example.org/pilotfish/pkg/trace"
)

// batch yields jobs that all come within ten seconds.
type batch struct {
	rng *rand.Rand
	n   int
	at  float64
}

func (b *batch) Next() (trace.Job, error) {
	if b.n--; b.n < 0 {
		return trace.Job{}, io.EOF
	}
	j := randomJob(b.rng)
	b.at += b.rng.Float64() * 10 / 60
	j.Offset = b.at
	return j, nil
}

// randomJob shares its project's data with other jobs, and no later joblet:
// the forecast leaves that out.
func randomJob(rng *rand.Rand) trace.Job {
	project := rng.IntN(5)
	return trace.Job{
		Project: trace.Project("abcde"[project : project+1]), Bytes: 1,
		Priority: selection.Priority(rng.IntN(selection.Priorities)),
		Load:     float64(project), Operators: rng.ExpFloat64(), Output: rng.ExpFloat64(),
	}
}

// What the clairvoyant expects of a server comes to pass when no other job comes.
func TestForecastComesToPass(t *testing.T) {
	const last = 1000 // the number of the job that is forecast
	waited := 0
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 3))
		var got time.Duration
		c := setup(t, "clairvoyant", "none", 1, 1+rng.IntN(4))
		c.Source = &batch{rng: rng, n: 60}
		c.End = time.Duration(rng.Int64N(int64(10 * time.Second)))
		c.Observe = func(r *Result) {
			if r.Number == last {
				got = r.Wait
			}
		}
		w, err := newWorld(c)
		require.NoError(t, err)
		require.NoError(t, w.loop(t.Context()))

		w.now, w.exhausted, w.cfg.End = w.cfg.End, true, 0
		given := randomJob(rng)
		j := newJob(&given, last)
		want := w.servers[0].startsIn(j, w.now, never)
		w.open++
		w.sidecars[0].submit(w, j)
		require.NoError(t, w.loop(t.Context()))
		require.Equal(t, want, got, "seed %d", seed)
		if want > 0 {
			waited++
		}
	}
	assert.Greater(t, waited, 200, "jobs that had to wait")
}

// It takes the least of costs that are worked out to their end, and of equal
// ones a server with the fewest jobs.
func TestClairvoyantTakesTheLeast(t *testing.T) {
	chosen := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 4))
		c := setup(t, "clairvoyant", "none", 4, 1+rng.IntN(2))
		c.Source = &batch{rng: rng, n: 60}
		c.End = time.Duration(rng.Int64N(int64(10 * time.Second)))
		c.Observe = func(*Result) {}
		w, err := newWorld(c)
		require.NoError(t, err)
		require.NoError(t, w.loop(t.Context()))
		w.now = w.cfg.End
		given := randomJob(rng)
		w.asking = newJob(&given, 1000)
		seer := w.cfg.Policy.(*clairvoyant)
		views := make([]selection.View, len(w.servers))
		costs := make([]time.Duration, len(w.servers))
		best := 0
		for i, s := range w.servers {
			views[i].ID = selection.UpstreamID(s.address)
			fetch := float64(s.fetchTime(w.asking, w.now)) * seer.crowding()
			costs[i] = time.Duration(fetch) + s.startsIn(w.asking, w.now, never)
			again := *w.asking
			again.phase = outputFeed // of an attempt that was lost
			require.Equal(t, s.startsIn(w.asking, w.now, never), s.startsIn(&again, w.now, never), "seed %d", seed)
			if costs[i] < costs[best] || costs[i] == costs[best] && len(s.present) < len(w.servers[best].present) {
				best = i
			}
		}
		got := seer.Pick(selection.Job{}, views, rng)
		require.Equal(t, costs[best], costs[got], "seed %d", seed)
		require.Len(t, w.servers[got].present, len(w.servers[best].present), "seed %d", seed)
		if costs[best] != costs[0] {
			chosen++
		}
	}
	assert.Greater(t, chosen, 50, "jobs for which the first server is not the best")
}

// The dearer a fetch is, the more jobs there are for each core of the servers that are up.
func TestFetchesAreDearerInACrowd(t *testing.T) {
	c := setup(t, "clairvoyant", "none", 3, 4)
	c.Source, c.Observe = &batch{}, func(*Result) {}
	w, err := newWorld(c)
	require.NoError(t, err)
	seer := w.cfg.Policy.(*clairvoyant)
	first, second, gone := w.servers[0], w.servers[1], w.servers[2]
	gone.up, gone.present = false, make([]*job, 100)
	for jobs, want := range map[[2]int]float64{
		{0, 0}: 1, {5, 0}: 1, {4, 2}: 1.125, {8, 0}: 2, {4, 4}: 2, {0, 16}: 8,
	} {
		first.present, second.present = make([]*job, jobs[0]), make([]*job, jobs[1])
		assert.InDelta(t, want, seer.crowding(), 1e-9, "%d jobs on 8 cores", jobs)
	}
	first.up, second.up = false, false
	assert.Equal(t, 1.0, seer.crowding(), "no server is up")
}

// It is what it is for: policies with less knowledge do not reach it.
func TestClairvoyantWaitsLeast(t *testing.T) {
	mean := func(c Config) float64 {
		sum, n := 0.0, 0
		c.Source = &poisson{rng: rand.New(rand.NewPCG(6, 6)), rate: 7.2, work: 2, n: 20_000}
		c.Observe = func(r *Result) { sum += r.Wait.Seconds(); n++ }
		_, err := Run(t.Context(), c)
		require.NoError(t, err)
		return sum / float64(n)
	}
	limit := mean(setup(t, "clairvoyant", "none", 4, 4))
	assert.Positive(t, limit)
	for _, policy := range rivals.All() {
		assert.Greater(t, mean(setup(t, policy, "none", 4, 4)), limit, policy)
	}
}
