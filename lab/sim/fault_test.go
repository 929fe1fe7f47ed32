package sim

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/lab/rivals"
	"example.org/pilotfish/lab/trace"
)

// fault returns a fault of the first upstream for a day, modified by change.
func fault(kind FaultKind, change func(*Fault)) *Fault {
	f := Fault{Kind: kind, For: 24 * time.Hour, Factor: 10}
	change(&f)
	return &f
}

// played simulates jobs, and returns the result of each, by its number.
func played(t *testing.T, cfg Config, jobs ...trace.Job) map[int64]Result {
	t.Helper()
	got := map[int64]Result{}
	totals := run(t, cfg, slices.Values(jobs), func(r *Result) { got[r.Number] = *r })
	require.Len(t, got, len(jobs))
	require.Zero(t, totals.InFlight)
	return got
}

// Jobs on a server that hangs make no progress, and jobs that arrive during the hang wait.
func TestAHungServerStandsStill(t *testing.T) {
	cfg := setup(t, "random", "none", 1, 1)
	cfg.Fleet.Fault = fault(hung, func(f *Fault) { f.At, f.For = 4*time.Second, 5*time.Second })
	got := played(t, cfg, trace.Job{Operators: 10}, trace.Job{Offset: 5, Operators: 1})
	assert.Equal(t, 15*time.Second, got[1].Run)
	assert.Equal(t, 10*time.Second, got[2].Wait)
	assert.Equal(t, time.Second, got[2].Run)

	cfg.Fleet.Fault = fault(hung, func(f *Fault) { f.At = time.Second })
	got = played(t, cfg, trace.Job{Offset: 2, Operators: 1, Timeouts: trace.Timeouts{Queue: 30}})
	assert.Equal(t, Expired, got[1].Outcome)
	assert.Equal(t, 30*time.Second, got[1].Wait)
}

// TestWhatSickServersReport checks the reports of servers with faults.
func TestWhatSickServersReport(t *testing.T) {
	report := func(kind FaultKind) (w *world, r *pool.Report) {
		cfg := setup(t, "random", "none", 1, 4)
		cfg.Fleet.Fault = fault(kind, func(f *Fault) { f.Factor = 4000 })
		cfg.Source, cfg.Observe = slices.Values([]trace.Job{}), func(*Result) {}
		w = newWorld(cfg)
		j := newJob(&trace.Job{Project: "p", Operators: 9}, 1)
		j.side, j.assignment = w.sidecars[0], new(pool.Assignment)
		w.servers[0].receive(w, j)
		w.servers[0].completed = 7
		p := &w.sidecars[0].polls[0]
		report := w.servers[0].report(w, &p.seen)
		return w, &report
	}
	_, r := report(slow)
	assert.Equal(t, [2]float64{1, 0}, r.Running)
	assert.Equal(t, 4, r.Cores)
	assert.Equal(t, 7.0, r.Completed)
	assert.False(t, r.Cached.Contains(1))
	for kind, want := range map[FaultKind][2]time.Duration{hung: {2 * time.Second, time.Second}, slow: {}} {
		w, _ := report(kind)
		assert.Equal(t, want, [2]time.Duration{w.servers[0].failsAfter(w, false), w.servers[0].failsAfter(w, true)}, kind)
	}
}

// A server that does not respond to a poll is polled again soon, a limited number of times.
func TestAFailedPollIsCheckedSoon(t *testing.T) {
	cfg := setup(t, "random", "none", 1, 4)
	cfg.Sidecars.Interval = 30 * time.Second
	cfg.Fleet.Fault = fault(hung, func(f *Fault) { f.At = time.Minute })
	cfg.Source, cfg.Observe, cfg.End = slices.Values([]trace.Job{{Offset: 1000}}), func(*Result) {}, 105*time.Second
	w := newWorld(cfg)
	require.NoError(t, w.loop(t.Context()))
	failed := w.sidecars[0].polls[0].failed
	assert.GreaterOrEqual(t, failed, 1+maxChecks, "polls of every half a minute would have failed twice")
	assert.LessOrEqual(t, failed, 2+maxChecks)
}

func TestServersDiffer(t *testing.T) {
	on := func(change func(*Fleet), jobs ...trace.Job) map[int64]Result {
		cfg := setup(t, "random", "none", 1, 4)
		change(&cfg.Fleet)
		return played(t, cfg, jobs...)
	}
	slowed := on(func(f *Fleet) { f.Fault = fault(slow, func(f *Fault) { f.Factor = 5 }) }, trace.Job{Operators: 2})
	assert.Equal(t, 10*time.Second, slowed[1].Run)
	fast := on(func(f *Fleet) { f.Unlike = Unlike{Upstreams: 1, Cores: 1, Speed: 2} }, trace.Job{Operators: 2}, trace.Job{Operators: 2})
	assert.Equal(t, time.Second, fast[1].Run)
	assert.Equal(t, time.Second, fast[2].Wait, "there is one core")
}

// Conservation with all faults at once, with copies of jobs, and with people who disconnect: every arrival ends once, and
// nothing remains (invariant 1).
func TestConservation(t *testing.T) {
	hedged, outcomes := 0, map[Outcome]int{}
	for i, policy := range rivals.All() {
		rng := rand.New(rand.NewPCG(9, uint64(i)))
		cfg := setup(t, policy, []string{"none", "threshold", "dagor"}[i%3], 6, 4)
		cfg.Seed, cfg.Fleet.Stops = uint64(i), restart(time.Minute)
		cfg.Fleet.Unlike = Unlike{Upstreams: 2, Cores: 2, Speed: 0.5}
		cfg.Fleet.Fault = &Fault{
			Kind: []FaultKind{hung, slow, failing}[(i+i/3)%3], Upstream: rng.IntN(6), Factor: 5,
			At:  time.Duration(rng.Int64N(int64(4 * time.Minute))),
			For: time.Duration(rng.Int64N(int64(3 * time.Minute))),
		}
		cfg.Sidecars.Count, cfg.Sidecars.Wait, cfg.Sidecars.Together = 3, time.Minute, i%2 == 0
		cfg.Sidecars.Lag, cfg.Sidecars.Hedge, cfg.Sidecars.Withdraw = time.Duration(i%3)*time.Second, i%4 > 1, i%2 == 0
		if i%4 > 0 {
			cfg.Sidecars.Leave, cfg.Sidecars.Again = 3*time.Second, 2
		}
		arrived := map[int64]int{}
		jobs := poisson{rng: rng, rate: 10, work: 1, n: 4000, withPriority: true}.all
		totals := run(t, cfg, jobs, func(r *Result) { arrived[r.Number]++; outcomes[r.Outcome]++ })
		require.Len(t, arrived, 4000, policy)
		for number, n := range arrived {
			require.Equal(t, 1, n, "%s: job %d", policy, number)
		}
		assert.Equal(t, totals.Arrivals, totals.Ended, policy)
		assert.Zero(t, totals.InFlight, policy)
		assert.Zero(t, totals.Waiting, policy)
		assert.Equal(t, 6, totals.Stops, policy)
		hedged += totals.Hedged
	}
	assert.Greater(t, hedged, 1000)
	for _, o := range []Outcome{Done, Expired, Lost, Failed, Left} {
		assert.Positive(t, outcomes[o], "outcome %d", o)
	}
}

// Fetches use their links one after another and hold no core. None is shorter than it would be
// alone.
func TestFetchesPassLinks(t *testing.T) {
	fetch := func(project trace.Project, load float64) trace.Job {
		return trace.Job{Project: project, Load: load, Bytes: 1 << 20}
	}
	for name, c := range map[string]struct {
		upstreams int
		links     Links
		ends      [3]float64
	}{
		"cores":             {1, Links{}, [3]float64{0.5, 5.5, 8.5}},
		"an upstream's":     {1, Links{Upstream: 1 << 20}, [3]float64{1, 5, 3}},
		"two of upstreams":  {2, Links{Upstream: 1 << 18}, [3]float64{4, 5, 3}},
		"one for upstreams": {2, Links{Shared: 1 << 18}, [3]float64{4, 8, 3}},
		"the slower of two": {2, Links{Upstream: 1 << 30, Shared: 1 << 18}, [3]float64{4, 8, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := setup(t, "least-in-flight", "none", c.upstreams, 1)
			cfg.Fleet.Links = c.links
			requireEnds(t, played(t, cfg, fetch("a", 0.5), fetch("b", 5), trace.Job{Project: "c", Operators: 3}), c.ends[:]...)
		})
	}
}
