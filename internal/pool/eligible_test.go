package pool

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
)

// witness is a policy that picks the first upstream and keeps the views.
type witness struct {
	job   selection.Job
	views []selection.View
}

func (w *witness) Pick(job selection.Job, views []selection.View, _ *rand.Rand) int {
	w.job, w.views = job, slices.Clone(views)
	return 0
}

// TestViews checks all that a policy sees of an upstream with a fresh report, with a stale one, and without one.
func TestViews(t *testing.T) {
	f, w := newFixture(t, "random", 0), &witness{}
	f.cfg.Policy = w
	us := upstreams(2)
	us[0].Weight, us[0].StopsAt = 2, start.Add(time.Hour)
	us[1].Cores, us[1].StartedAt = 4, start.Add(-time.Hour)
	f.Set(start, us)
	stale := report(start, 50, 10)
	stale.Cores = 0
	f.Report(start, us[1].Address, stale)
	r := report(start.Add(time.Minute), 5, 2, 7)
	r.Running[selection.High], r.Stalled[selection.High], r.CoresBusy = 3, 1, 4
	f.Report(start.Add(time.Minute), us[0].Address, r)
	f.Set(start.Add(time.Minute), append(us, upstreams(3)[2]))
	f.members[us[0].Address].latency.observe(start, 0.25)
	now := start.Add(time.Minute + 2*time.Second)
	first := f.must(now, Request{Project: 9, Priority: selection.High}, nil)
	f.must(now, Request{Project: 7, Priority: selection.High}, []string{us[0].Address})
	now = now.Add(500 * time.Millisecond)
	f.must(now, Request{Project: 7}, nil)

	want := []selection.View{
		{
			ID: f.members[us[0].Address].id, Weight: 2, Cores: 16, Cache: selection.Cached, Warm: 1,
			InFlight: 1, Assigned: 12, Jobs: 12, BlockedJobs: 4, Fresh: true, Latency: 0.25,
			UntilStop: 3600 - 62.5,
		},
		{
			ID: f.members[us[1].Address].id, Weight: 1, Cores: 4, Cache: selection.AssumedCached, Warm: 0.95,
			InFlight: 1, Assigned: 1, Jobs: 1,
		},
		{
			ID: f.members[upstreams(3)[2].Address].id, Weight: 0.1, Cores: 16, // it has just joined
		},
	}
	assert.Equal(t, selection.Job{Project: 7, Number: 2, Hour: uint64(start.Unix() / 3600), Fetch: 2, Open: 1}, w.job)
	require.Len(t, w.views, len(want))
	for i := range want {
		assert.Equal(t, want[i], w.views[i])
	}
	for _, coreless := range []float64{0, 4} { // a job of the project waits there, and then none
		_, err := f.Explain(now, Request{Project: 9})
		require.NoError(t, err)
		assert.Equal(t, coreless, w.views[0].BlockedJobs)
		first.Answered(now, true, nil)
	}
}

// TestViewsOfTheEligible checks that a policy sees the eligible upstreams only, sorted by address.
func TestViewsOfTheEligible(t *testing.T) {
	f, w := newFixture(t, "random", 8), &witness{}
	f.cfg.Policy = w
	us, now := upstreams(8), start
	rng := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		now = now.Add(time.Duration(rng.IntN(3000)) * time.Millisecond)
		for i := range us {
			us[i].Draining = rng.IntN(3) == 0
			f.shut(us[i].Address, rng.IntN(3) == 0)
			if rng.IntN(4) == 0 {
				f.Report(now, us[i].Address, report(now, 1, float64(rng.IntN(130))))
			}
		}
		if rng.IntN(5) == 0 {
			for i := range us {
				us[i].Draining = true
			}
		}
		f.Set(now, us)
		tried := []string{us[rng.IntN(8)].Address, us[rng.IntN(8)].Address}

		shut := func(u Upstream) bool { return f.isShut(now, u.Address) }
		allDrain := !slices.ContainsFunc(us, func(u Upstream) bool { return !u.Draining })
		panicking := !slices.ContainsFunc(us, func(u Upstream) bool { return (allDrain || !u.Draining) && !shut(u) })
		var want []uint64
		for _, u := range us {
			m := f.members[u.Address]
			if (panicking || !shut(u)) && (allDrain || !u.Draining) && !slices.Contains(tried, u.Address) &&
				!(m.load.level <= 0 && now.Sub(m.load.at) <= 15*time.Second) {
				want = append(want, m.id)
			}
		}
		l, err := f.Claim(now, Request{}, tried)
		if len(want) == 0 {
			why := ErrAllTried
			if slices.ContainsFunc(us, func(u Upstream) bool {
				return (allDrain || !u.Draining) && !slices.Contains(tried, u.Address)
			}) {
				why = ErrNoneEligible
			}
			require.ErrorIs(t, err, why)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, panicking, l.Panic)
		var got []uint64
		for _, v := range w.views {
			got = append(got, v.ID)
		}
		require.Equal(t, want, got)
		l.Done(now, Gone)
	}
	f.Set(now, nil)
	_, err := f.Claim(now, Request{}, nil)
	require.ErrorIs(t, err, ErrEmpty)
	assert.Greater(t, f.foreseen, 100)
}

func TestPanicWhenEveryBreakerIsOpen(t *testing.T) {
	f, us := newFixture(t, "least-in-flight", 4), upstreams(4)
	for _, u := range us {
		f.shut(u.Address, true)
	}
	used := map[string]bool{}
	for range 16 {
		l := f.must(start, Request{}, nil)
		assert.True(t, l.Panic)
		used[l.Address] = true
		l.Answered(start, false, nil)
	}
	assert.Len(t, used, 4)
	assert.True(t, InPanic(f.States(start)))
	l := f.must(start, Request{}, nil)
	l.Answered(start, true, nil)
	assert.False(t, InPanic(f.States(start)), "a response ends it")
	next := f.must(start, Request{}, nil)
	assert.Equal(t, l.Address, next.Address)
	assert.False(t, next.Panic)
}

// Fallbacks are the next choices of the policy.
func TestFallbacks(t *testing.T) {
	f, us := newFixture(t, "expected", 4), upstreams(4)
	for i, load := range []float64{40, 0, 80, 20} {
		f.Report(start, us[i].Address, report(start, load, 0))
	}
	for most, want := range [][]string{nil, {us[3].Address}, {us[3].Address, us[0].Address}, {us[3].Address, us[0].Address, us[2].Address}, {us[3].Address, us[0].Address, us[2].Address}} {
		a := f.must(start, Request{Fallbacks: most}, nil)
		assert.Equal(t, us[1].Address, a.Address)
		assert.Equal(t, want, a.Fallbacks)
		a.Done(start, Answered)
	}
}

// A job that finds no other upstream is sent to one with an open breaker after its first open time, whatever that has grown to.
func TestNoJobWaitsForGrownOpenTimes(t *testing.T) {
	us := upstreams(5)
	for name, c := range map[string]struct {
		among, tried []string
		allDrain     bool
		early        int // the first open time of this one is over
		to           int // where the job goes; -1 is nowhere
	}{
		"another is left":        {nil, nil, false, 0, 3},
		"no other is left":       {nil, []string{us[3].Address}, false, 1, 1},
		"too early":              {nil, []string{us[3].Address}, false, -1, -1},
		"those it has tried":     {nil, []string{us[3].Address, us[1].Address}, false, 1, -1},
		"those it may go to":     {[]string{us[2].Address}, nil, false, 2, 2},
		"one that drains is not": {nil, []string{us[3].Address}, false, 4, -1},
		"all drain":              {nil, []string{us[3].Address}, true, 4, 4},
	} {
		t.Run(name, func(t *testing.T) {
			f, us := newFixture(t, "least-in-flight", 5), upstreams(5)
			for i := range us {
				us[i].Draining = i == 4 || c.allDrain
			}
			f.Set(start, us)
			for i, u := range us {
				f.shut(u.Address, i != 3 && i != c.early)
				if i == c.early {
					f.reopen(u.Address, start)
				}
			}
			before := f.States(start)
			a, err := f.Claim(start, Request{Among: places(c.among)}, c.tried)
			if c.to < 0 {
				require.ErrorIs(t, err, ErrNoneEligible)
			} else {
				require.NoError(t, err)
				assert.Equal(t, us[c.to].Address, a.Address)
				assert.False(t, a.Panic)
			}
			for i, u := range us {
				assert.Equal(t, i != c.to || i == 3, before[i].Breaker == f.state(start, u.Address).Breaker, "upstream %d", i)
			}
		})
	}
}

// reopen opens an upstream's breaker twice, so that at now the first open time is over and the grown one is not.
func (f *fixture) reopen(address string, now time.Time) {
	b := &f.members[address].breaker
	b.Refused(now.Add(-14 * time.Second))
	_, ok := b.Enter(now.Add(-7*time.Second), false)
	require.True(f.t, ok)
	b.Refused(now.Add(-7 * time.Second))
	require.True(f.t, b.ReadyEarly(now) && !b.Ready(now))
}

// A job that ends with the process before says nothing about what the one after it has cached.
func TestAJobOfTheProcessBefore(t *testing.T) {
	f, us := newFixture(t, "expected", 1), upstreams(1)
	us[0].StartedAt = start
	f.Set(start, us)
	before := f.must(start, Request{Project: 7}, nil)
	us[0].StartedAt = start.Add(time.Second)
	f.Set(start.Add(time.Second), us)
	now := start.Add(2 * time.Second)
	require.Equal(t, selection.NotCached, f.must(now, Request{Project: 7}, nil).Cache)
	before.Done(now, NoAnswer)
	assert.Equal(t, selection.AssumedCached, f.must(now, Request{Project: 7}, nil).Cache)
}

// An upstream whose start is no longer known has not restarted, and a report of the process before it is not its own.
func TestWhatIsNoRestart(t *testing.T) {
	f, us := newFixture(t, "expected", 1), upstreams(1)
	us[0].StartedAt = start
	f.Set(start, us)
	f.Report(start, us[0].Address, report(start, 3, 0, 7))
	us[0].StartedAt = time.Time{}
	f.Set(start.Add(time.Second), us)
	assert.InDelta(t, 3, f.States(start)[0].Running, 0)

	f.must(start, Request{}, nil)
	f.Set(start.Add(2*time.Second), nil)
	f.Set(start.Add(3*time.Second), us)
	now := start.Add(4 * time.Second)
	f.Report(now, us[0].Address, report(start.Add(time.Second), 3, 0, 7))
	f.Listing(start.Add(time.Second), us[0].Address, projects{7: true})
	s := f.States(now)[0]
	assert.Equal(t, []float64{0, 0, -1}, []float64{s.Running, float64(s.Cached), s.ReportAge})
	f.Report(now, us[0].Address, report(now, 1, 0, 7))
	assert.InDelta(t, 1, f.States(now)[0].Running, 0)
}

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
	assert.Equal(t, []any{Stopping, "stops in 12 s", false, true}, []any{s.Reason, s.Why, s.Eligible, s.IsLeaving()})
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
