package sim

import (
	"iter"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/lab/rivals"
	"example.org/pilotfish/lab/trace"
	"example.org/pilotfish/pkg/selection"
)

// poisson is n jobs with exponential work and exponential times between arrivals, each with one
// joblet and nothing to share. The submitters send them in turn.
type poisson struct {
	rng          *rand.Rand
	rate, work   float64
	n            int
	withPriority bool
}

func (p poisson) all(yield func(trace.Job) bool) {
	at := 0.0
	for i := range p.n {
		at += p.rng.ExpFloat64() / p.rate
		j := trace.Job{Offset: at, Operators: p.rng.ExpFloat64() * p.work, Submitter: int64(i)}
		if p.withPriority && p.rng.IntN(5) == 0 {
			j.Priority = selection.High
		}
		if !yield(j) {
			return
		}
	}
}

// setup returns a run with a fleet in which jobs never reach a timeout.
func setup(t testing.TB, policy, detector string, upstreams, cores int) Config {
	t.Helper()
	c := Config{Fleet: DefaultFleet(), Sidecars: DefaultSidecars()}
	c.Fleet.Upstreams, c.Fleet.Cores = upstreams, cores
	c.Sidecars.Wait = 1000 * time.Hour
	var err error
	c.Policy, err = rivals.New(policy)
	require.NoError(t, err)
	c.Detector, err = overload.Settings{Policy: detector, Stalled: 100, Reset: 0.8}.Detector()
	require.NoError(t, err)
	return c
}

// run simulates jobs, and calls observe for each one that ends.
func run(t testing.TB, c Config, jobs iter.Seq[trace.Job], observe func(*Result)) Totals {
	t.Helper()
	c.Source, c.Observe = jobs, observe
	totals, err := Run(t.Context(), c)
	require.NoError(t, err)
	return totals
}

// erlangC returns the mean wait in an M/M/k queue, by the Erlang C formula.
func erlangC(k int, rate, work float64) float64 {
	a := rate * work
	sum, term := 0.0, 1.0
	for n := range k {
		sum += term
		term *= a / float64(n+1)
	}
	term /= 1 - a/float64(k)
	return term / (sum + term) * work / (float64(k) - a)
}

// Invariant 9: a server with Poisson arrivals and exponential work behaves as an M/M/k queue.
func TestAgreesWithErlangC(t *testing.T) {
	for _, c := range []struct {
		cores int
		load  float64
		jobs  int // enough for an error well below the allowed 3 %
	}{{1, 0.5, 200_000}, {4, 0.7, 500_000}} {
		const work = 2.0
		rate := c.load * float64(c.cores) / work
		sum, n := 0.0, 0
		jobs := poisson{rng: rand.New(rand.NewPCG(uint64(c.cores), 5)), rate: rate, work: work, n: c.jobs}.all
		totals := run(t, setup(t, "random", "none", 1, c.cores), jobs, func(r *Result) { sum += r.Wait.Seconds(); n++ })
		require.Equal(t, c.jobs, n)
		want := erlangC(c.cores, rate, work)
		assert.InEpsilon(t, want, sum/float64(c.jobs), 0.03, "M/M/%d at load %v", c.cores, c.load)
		assert.InEpsilon(t, float64(c.jobs)*work, totals.CoreSeconds, 0.01)
	}
}

// Invariant 7: equal scenario and seed give equal results.
func TestDeterminism(t *testing.T) {
	play := func() (results []Result) {
		c := setup(t, "expected", "threshold", 5, 16)
		c.Sidecars.Count, c.Sidecars.Wait = 4, time.Minute
		c.Fleet.Stops = restart(50 * time.Second)
		c.Seed = 11
		jobs := poisson{rng: rand.New(rand.NewPCG(4, 4)), rate: 30, work: 2, n: 5000, withPriority: true}.all
		run(t, c, jobs, func(r *Result) { results = append(results, *r) })
		return results
	}
	first := play()
	require.Len(t, first, 5000)
	assert.Equal(t, first, play())
}

// High jobs run first: with a fifth of the jobs high, at a high load, they wait far less, and
// the mean of all jobs is as without priorities.
func TestPriorityGoesFirst(t *testing.T) {
	var sum [selection.Priorities]float64
	var n [selection.Priorities]float64
	jobs := poisson{rng: rand.New(rand.NewPCG(5, 5)), rate: 7.2, work: 2, n: 400_000, withPriority: true}.all
	run(t, setup(t, "random", "none", 1, 16), jobs, func(r *Result) { sum[r.Priority] += r.Wait.Seconds(); n[r.Priority]++ })
	high, low := sum[selection.High]/n[selection.High], sum[selection.Low]/n[selection.Low]
	assert.Less(t, high, low/4)
	assert.InEpsilon(t, erlangC(16, 7.2, 2), (sum[0]+sum[1])/(n[0]+n[1]), 0.05)
}

// Equal joblets are computed once, whether cached, running or queued.
func TestEqualJobletsAreShared(t *testing.T) {
	jobs := []trace.Job{}
	for i := range 10 {
		jobs = append(jobs, trace.Job{
			Offset: 0.1 * float64(i), Project: "p", Version: 1, Shared: "s",
			Load: 5, SharedRules: 2, Operators: 1, Output: 0.5, Bytes: 1000,
		})
	}
	var last time.Duration
	totals := run(t, setup(t, "random", "none", 1, 16), slices.Values(jobs), func(r *Result) {
		last = max(last, r.Arrived+r.Wait+r.Run)
		assert.Zero(t, r.Wait)
	})
	assert.Equal(t, 1, totals.Fetches)
	assert.InDelta(t, 8.5, last.Seconds(), 1e-6)
	assert.InDelta(t, 5+2+10*1.5, totals.CoreSeconds, 1e-6)
}

// requireEnds checks when each job ended, in seconds.
func requireEnds(t *testing.T, got map[int64]Result, want ...float64) {
	t.Helper()
	for i, at := range want {
		r := got[int64(i+1)]
		require.InDelta(t, at, (r.Arrived + r.Wait + r.Run).Seconds(), 1e-6, "job %d", i+1)
	}
}

// A submitter sends its next job after the response to the one before. By then the server has
// assigned the core to a waiting job.
func TestDependentJobsComeAfterThoseThatWaitAtTheServer(t *testing.T) {
	got := played(t, setup(t, "random", "none", 1, 1),
		trace.Job{Offset: 0, Operators: 10},
		trace.Job{Offset: 1, Operators: 5},
		trace.Job{Offset: 2, Operators: 1, After: 1, Priority: selection.High})
	requireEnds(t, got, 10, 15, 16)
}

// The cache equals a naive list, sorted by the time of addition: the oldest results are evicted first, and adding a
// cached result again changes nothing.
func TestCacheAgainstNaiveList(t *testing.T) {
	type entry struct {
		k     key
		bytes int64
	}
	rng := rand.New(rand.NewPCG(6, 6))
	c := newCache(&Fleet{Cache: 1000})
	var list []entry
	used := int64(0)
	for now := range time.Duration(20_000) {
		k := key{project: rng.Uint64N(40), phase: phase(rng.IntN(2))}
		found := slices.ContainsFunc(list, func(e entry) bool { return e.k == k })
		require.Equal(t, found, c.has(k), "step %d: is %v cached?", now, k)
		bytes := rng.Int64N(300)
		c.put(k, bytes, now)
		if !found {
			for used+bytes > 1000 {
				used -= list[0].bytes
				list = list[1:]
			}
			used += bytes
			list = append(list, entry{k, bytes})
		}
		require.Equal(t, used, c.used, "step %d: bytes used", now)
		at := listing{cache: &c, at: now}
		for p := range uint64(40) {
			require.Equal(t, slices.ContainsFunc(list, func(e entry) bool { return e.k == key{project: p} }), at.Contains(p), "step %d: is project %d listed?", now, p)
		}
	}
}

// A container pool equals a naive list, sorted by last use. If all containers are reserved, a new one replaces the least
// recently used one with overcommit, and is not kept otherwise.
func TestContainersAgainstNaiveList(t *testing.T) {
	type container struct {
		project uint64
		used    time.Duration
	}
	for _, overcommit := range []bool{false, true} {
		rng := rand.New(rand.NewPCG(7, 7))
		c := newCache(&Fleet{Cache: 1, Containers: Containers{Most: 5, Keep: 30, Overcommit: overcommit}})
		var list []container
		now, evictions := time.Duration(0), 0
		for range 20_000 {
			now += time.Duration(rng.IntN(8))
			project := rng.Uint64N(12)
			list = slices.DeleteFunc(list, func(o container) bool { return o.used+30 <= now })
			at := slices.IndexFunc(list, func(o container) bool { return o.project == project })
			require.Equal(t, at >= 0, c.use(key{project: project}, now), "overcommit %v, at %d: project %d has a container", overcommit, now, project)
			full, evicted := len(list) == 5, 0
			switch {
			case at >= 0:
				list = slices.Delete(list, at, at+1)
			case full && overcommit:
				list, evicted = list[1:], 1
			case full:
				require.Zero(t, c.put(key{project: project}, 1, now))
				require.False(t, c.has(key{project: project}), "all are reserved")
				continue
			}
			list = append(list, container{project, now})
			if at < 0 {
				require.Equal(t, evicted, c.put(key{project: project}, 1, now), "overcommit %v, at %d: evictions", overcommit, now)
			}
			evictions += evicted
			require.Len(t, c.order, len(list), "overcommit %v, at %d", overcommit, now)
			listed := listing{cache: &c, at: now}
			for p := range uint64(12) {
				require.Equal(t, slices.ContainsFunc(list, func(o container) bool { return o.project == p }), listed.Contains(p), "overcommit %v, at %d: is project %d listed?", overcommit, now, p)
			}
		}
		assert.Equal(t, overcommit, evictions > 100, "overcommit %v: %d evictions", overcommit, evictions)
	}
}
