package pool

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/breaker"
	"example.org/pilotfish/pkg/overload"
	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/pkg/selection/rivals"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// switchGate is a gate that a test opens and shuts.
type switchGate struct {
	shut     bool
	entered  int
	verdicts []breaker.Verdict
}

func (g *switchGate) Ready(time.Time) bool { return !g.shut }

func (g *switchGate) Status() breaker.Status { return breaker.Status{} }

func (g *switchGate) Enter(time.Time) (func(time.Time, breaker.Verdict), bool) {
	if g.shut {
		return nil, false
	}
	g.entered++
	return func(_ time.Time, v breaker.Verdict) { g.verdicts = append(g.verdicts, v) }, true
}

// projects is a CacheSet over a map.
type projects map[uint64]bool

func (p projects) Contains(project uint64) bool { return p[project] }
func (p projects) Len() int                     { return len(p) }

type fixture struct {
	*Pool
	gates map[string]*switchGate
}

func newFixture(t testing.TB, policy string, n int) *fixture {
	t.Helper()
	choose, err := rivals.New(policy)
	require.NoError(t, err)
	detector, err := overload.New("threshold", 100)
	require.NoError(t, err)
	f := &fixture{gates: map[string]*switchGate{}}
	f.Pool, err = New(Config{
		Policy: choose, Detector: detector, Rand: rand.New(rand.NewPCG(1, 2)), Breakers: breakers(t),
		Interval: 5 * time.Second,
	})
	require.NoError(t, err)
	f.Pool.gate = func(address string) gate {
		f.gates[address] = &switchGate{}
		return f.gates[address]
	}
	f.Set(start, upstreams(n))
	return f
}

func breakers(t testing.TB) *breaker.Set {
	t.Helper()
	set, err := breaker.New(breaker.Config{Settings: breaker.Default(), Rand: rand.New(rand.NewPCG(1, 3))})
	require.NoError(t, err)
	return set
}

func upstreams(n int) []Upstream {
	us := make([]Upstream, n)
	for i := range us {
		us[i].Address = fmt.Sprintf("10.0.0.%d:9000", i)
	}
	return us
}

func report(at time.Time, running, stalled float64, cached ...uint64) Report {
	set := projects{}
	for _, p := range cached {
		set[p] = true
	}
	return Report{
		At: at, Running: [2]float64{selection.Low: running}, Stalled: [2]float64{selection.Low: stalled},
		Cores: 16, CoresBusy: -1, Completed: -1, Wait: math.NaN(), Response: math.NaN(), Cached: set,
	}
}

// Invariants 1 to 5 over random histories, against a naive list of open assignments.
func TestRandomHistories(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 0))
		f := newFixture(t, rivals.All()[int(seed)%len(rivals.All())], 5)
		now := start
		var open []*Assignment
		in := map[string]bool{}
		for _, s := range f.States(now) {
			in[s.Address] = true
		}
		for range 2000 {
			now = now.Add(time.Duration(rng.IntN(500)) * time.Millisecond)
			switch k := rng.IntN(20); {
			case k < 9:
				var tried []string
				if rng.IntN(4) == 0 {
					tried = []string{fmt.Sprintf("10.0.0.%d:9000", rng.IntN(6))}
				}
				l, err := f.Claim(now, Request{Project: rng.Uint64N(20), Priority: selection.Priority(rng.IntN(2))}, tried)
				if err != nil {
					continue
				}
				u := l.Choice
				require.True(t, in[u.Address], "claimed an upstream that left")
				require.NotContains(t, tried, u.Address)
				require.True(t, l.Panic || !f.gates[u.Address].shut, "claimed behind a shut gate")
				open = append(open, l)
			case k < 17 && len(open) > 0:
				i := rng.IntN(len(open))
				if rng.IntN(2) == 0 {
					open[i].Answered(now, true, nil)
				}
				open[i].Done(now, Outcome(rng.IntN(Outcomes)))
				open[i].Done(now, Answered) // a second end changes nothing
				open = slices.Delete(open, i, i+1)
			case k == 17:
				us := upstreams(7)
				rng.Shuffle(len(us), func(i, j int) { us[i], us[j] = us[j], us[i] })
				us = us[:rng.IntN(len(us)+1)]
				f.Set(now, append(us, us...)) // every one named twice
				in = map[string]bool{}
				for _, u := range us {
					in[u.Address] = true
				}
			case k == 18:
				for _, g := range f.gates {
					g.shut = rng.IntN(3) == 0
				}
			default:
				a := fmt.Sprintf("10.0.0.%d:9000", rng.IntN(7))
				f.Report(now, a, report(now.Add(-time.Duration(rng.IntN(3000))*time.Millisecond), float64(rng.IntN(30)), float64(rng.IntN(150)), rng.Uint64N(20)))
			}
			want := map[string]int{}
			for _, l := range open {
				want[l.Address]++
			}
			require.Equal(t, len(open), f.InFlight())
			require.Len(t, f.States(now), len(in))
			for _, s := range f.States(now) {
				require.Equal(t, want[s.Address], s.InFlight, "%s", s.Address)
			}
		}
	}
}

// The estimate after any history equals the report, plus open claims it has
// not seen, less ends it has not seen: counted anew from the whole history.
func TestEstimateAgainstHistory(t *testing.T) {
	type past struct {
		*Assignment
		claimed, ended time.Time
	}
	rng := rand.New(rand.NewPCG(7, 7))
	f := newFixture(t, "random", 1)
	address := upstreams(1)[0].Address
	now, last, reported := start, time.Time{}, 0.0
	var history []*past
	for range 5000 {
		now = now.Add(time.Duration(1+rng.IntN(300)) * time.Millisecond)
		switch k := rng.IntN(10); {
		case k < 5:
			l, err := f.Claim(now, Request{}, nil)
			require.NoError(t, err)
			history = append(history, &past{Assignment: l, claimed: now})
		case k < 9 && len(history) > 0:
			h := history[rng.IntN(len(history))]
			if h.ended.IsZero() {
				h.Answered(now, true, nil)
				h.Done(now, Answered)
				h.ended = now
			}
		default:
			at := now.Add(-time.Duration(rng.IntN(1000)) * time.Millisecond)
			if !at.After(last) {
				continue
			}
			reported = float64(rng.IntN(60))
			f.Report(now, address, report(at, reported, 0))
			last = at
		}
		want, own := reported, 0.0
		for _, h := range history {
			open := h.ended.IsZero()
			if open {
				own++
			}
			switch seen := !h.claimed.After(last); {
			case !seen && open:
				want++
			case seen && !open && h.ended.After(last):
				want--
			}
		}
		if last.IsZero() || now.Sub(last) > 15*time.Second {
			want = own
		}
		require.InDelta(t, math.Max(want, own), f.States(now)[0].Jobs, 1e-9)
	}
}

func TestDrainingGetsNothingUnlessAllDrain(t *testing.T) {
	f := newFixture(t, "least-in-flight", 3)
	us := upstreams(3)
	us[0].Draining, us[1].Draining = true, true
	f.Set(start, us)
	for range 50 {
		l, err := f.Claim(start, Request{}, nil)
		require.NoError(t, err)
		require.Equal(t, us[2].Address, l.Address)
	}
	us[2].Draining = true
	f.Set(start, us)
	_, err := f.Claim(start, Request{}, nil)
	require.NoError(t, err, "service goes on when every upstream drains")
}

func TestPanicWhenBreakersAloneKeepOutMoreThanHalf(t *testing.T) {
	f := newFixture(t, "least-in-flight", 4)
	us := upstreams(4)
	for i, u := range us {
		f.gates[u.Address].shut = i < 2
	}
	l, err := f.Claim(start, Request{}, nil)
	require.NoError(t, err)
	assert.False(t, l.Panic, "half is not more than half")
	f.gates[us[2].Address].shut = true
	used := map[string]bool{}
	for range 8 {
		l, err = f.Claim(start, Request{}, nil)
		require.NoError(t, err)
		assert.True(t, l.Panic)
		used[l.Address] = true
		l.Answered(start, true, nil) // must not need a gate
	}
	assert.Len(t, used, 4)
}

func TestOverloadedIsNotEligibleUntilItsReportIsStale(t *testing.T) {
	f := newFixture(t, "least-in-flight", 1)
	address := upstreams(1)[0].Address
	f.Report(start, address, report(start, 16, 101))
	_, err := f.Claim(start, Request{}, nil)
	require.ErrorIs(t, err, ErrNoneEligible)
	assert.Equal(t, "overloaded", f.States(start)[0].Why)
	_, err = f.Claim(start.Add(16*time.Second), Request{}, nil)
	require.NoError(t, err, "a report feed that froze must not stop the service")
}

func TestErrorsTellTriedFromIneligible(t *testing.T) {
	f := newFixture(t, "random", 2)
	us := upstreams(2)
	_, err := f.Claim(start, Request{}, []string{us[0].Address, us[1].Address})
	require.ErrorIs(t, err, ErrAllTried)
	f.Report(start, us[1].Address, report(start, 0, 200))
	_, err = f.Claim(start, Request{}, []string{us[0].Address})
	require.ErrorIs(t, err, ErrNoneEligible)
	us[1].Draining = true
	f.Set(start, us)
	_, err = f.Claim(start, Request{}, []string{us[0].Address})
	require.ErrorIs(t, err, ErrAllTried, "what drains is nothing to wait for")
	_, err = f.Claim(start, Request{}, []string{us[1].Address})
	require.NoError(t, err)
	f.Set(start, nil)
	_, err = f.Claim(start, Request{}, nil)
	require.ErrorIs(t, err, ErrEmpty)
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		name     string
		answered bool
		healthy  bool
		outcome  Outcome
		want     breaker.Verdict
	}{
		{"an answer", true, true, Answered, breaker.Healthy},
		{"an answer that was cut short later", true, true, Truncated, breaker.Healthy},
		{"a failing answer", true, false, Failed, breaker.Unhealthy},
		{"no connection", false, false, Refused, breaker.Unhealthy},
		{"a refusal for load", false, false, NotStarted, breaker.Unknown},
		{"a submitter that left", false, false, Gone, breaker.Unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, "random", 1)
			l, err := f.Claim(start, Request{}, nil)
			require.NoError(t, err)
			if c.answered {
				l.Answered(start, c.healthy, nil)
			}
			l.Done(start, c.outcome)
			assert.Equal(t, []breaker.Verdict{c.want}, f.gates[upstreams(1)[0].Address].verdicts)
		})
	}
}

func TestAssumedUntilReportsSayOtherwise(t *testing.T) {
	f := newFixture(t, "random", 1)
	address := upstreams(1)[0].Address
	status := func(now time.Time) selection.Cache {
		return f.members[address].cache(5, now, &f.cfg)
	}
	l, err := f.Claim(start, Request{Project: 5}, nil)
	require.NoError(t, err)
	assert.Equal(t, selection.NotCached, l.Cache)
	assert.Equal(t, selection.AssumedCached, status(start))
	now := start.Add(3 * time.Second)
	f.Report(now, address, report(now, 1, 0))
	assert.Equal(t, selection.AssumedCached, status(now), "the fetch may still run")
	now = now.Add(10 * time.Second)
	f.Report(now, address, report(now, 1, 0))
	assert.Equal(t, selection.NotCached, status(now), "it would be listed by now")
	now = now.Add(time.Second)
	f.Report(now, address, report(now, 1, 0, 5))
	assert.Equal(t, selection.Cached, status(now))
}

func TestRestartForgetsTheCache(t *testing.T) {
	f := newFixture(t, "random", 1)
	us := upstreams(1)
	us[0].StartedAt = start
	f.Set(start, us)
	f.Report(start.Add(time.Second), us[0].Address, report(start.Add(time.Second), 0, 0, 5))
	require.Equal(t, 1, f.States(start)[0].Cached)
	us[0].StartedAt = start.Add(time.Minute)
	f.Set(start.Add(time.Minute), us)
	assert.Zero(t, f.States(start)[0].Cached)
}

func TestHintIsAFresherReport(t *testing.T) {
	f := newFixture(t, "random", 1)
	address := upstreams(1)[0].Address
	f.Report(start, address, report(start, 10, 4))
	l, err := f.Claim(start.Add(time.Second), Request{Project: 9}, nil)
	require.NoError(t, err)
	now := start.Add(2 * time.Second)
	l.Answered(now, true, &Hint{At: now, Running: [2]float64{3, 0}, Waited: -1, Fetched: -1})
	assert.InDelta(t, 3, f.States(now)[0].Jobs, 1e-9)
}

// What a fetch costs is how much later the answer begins, whatever the
// upstream says of the fetch alone; an answer that is no later tells nothing.
func TestFetchTimeIsTheAnswersDelay(t *testing.T) {
	learned := func(ttfb, fetched time.Duration) float64 {
		f := newFixture(t, "random", 1)
		f.Report(start, upstreams(1)[0].Address, report(start, 10, 4))
		l, err := f.Claim(start.Add(time.Second), Request{Project: 9}, nil)
		require.NoError(t, err)
		now := start.Add(time.Second + ttfb)
		l.Answered(now, true, &Hint{At: now, Known: true, Waited: 0, Fetched: fetched})
		return f.fetches.expected(9)
	}
	before := newFixture(t, "random", 1).fetches.expected(9)
	assert.Greater(t, learned(time.Minute, -1), before)
	assert.Equal(t, learned(time.Minute, -1), learned(time.Minute, time.Hour))
	assert.Equal(t, before, learned(time.Millisecond, time.Hour))
}

// A report is often older than the hints on answers that came meanwhile.
func TestReportCountsBesideAFresherHint(t *testing.T) {
	f := newFixture(t, "random", 1)
	address := upstreams(1)[0].Address
	f.Report(start, address, report(start, 10, 4))
	l, err := f.Claim(start.Add(time.Second), Request{Project: 9}, nil)
	require.NoError(t, err)
	now := start.Add(6 * time.Second)
	l.Answered(now, true, &Hint{At: now, Running: [2]float64{3, 0}, Waited: -1, Fetched: -1})

	late := report(start.Add(5*time.Second), 7, 200, 5)
	late.Cores = 8
	f.Report(now, address, late)
	s := f.States(now)[0]
	assert.Equal(t, []float64{3, 0}, []float64{s.Running, s.Stalled}, "the hint's load is fresher")
	assert.Zero(t, s.ReportAge)
	assert.Equal(t, 8.0, f.members[address].cores(&f.cfg))
	assert.Equal(t, 1, s.Cached)
	assert.Zero(t, s.Level, "the detector sees each report")

	f.Report(now, address, report(start.Add(4*time.Second), 0, 0))
	assert.Equal(t, 1, f.States(now)[0].Cached, "a report older than the one before is dropped")
}

func TestListingCountsByItself(t *testing.T) {
	f := newFixture(t, "random", 1)
	address := upstreams(1)[0].Address
	status := func(now time.Time, project uint64) selection.Cache {
		s := f.members[address].cache(project, now, &f.cfg)
		return s
	}
	f.Listing(start, address, projects{5: true})
	assert.Equal(t, selection.Cached, status(start.Add(time.Minute), 5), "without any report")
	assert.Equal(t, selection.NotCached, status(start.Add(61*time.Second), 5), "four times as long as load")

	_, err := f.Claim(start.Add(time.Second), Request{Project: 6}, nil)
	require.NoError(t, err)
	now := start.Add(time.Minute)
	load := report(now, 1, 0)
	load.Cached = nil
	f.Report(now, address, load)
	assert.Equal(t, selection.AssumedCached, status(now, 6), "no listing has had the time to name it")
	assert.Equal(t, selection.NotCached, status(now.Add(time.Minute), 5), "load says nothing of the cache")
	f.Listing(start.Add(2*time.Second), address, projects{7: true})
	assert.Equal(t, selection.AssumedCached, status(now, 6), "the fetch may still have run")
	assert.Equal(t, selection.NotCached, status(now, 5))
	f.Listing(start.Add(time.Second), address, projects{5: true})
	assert.Equal(t, selection.NotCached, status(now, 5), "an older listing is dropped")
	f.Listing(now, address, projects{})
	assert.Equal(t, selection.NotCached, status(now, 6), "it would be listed by now")
	f.Listing(now, "10.9.9.9:1", projects{}) // unknown: nothing happens
	assert.Len(t, f.States(now), 1)
}

func TestExplainClaimsNothing(t *testing.T) {
	f := newFixture(t, "expected", 3)
	us := upstreams(3)
	f.Report(start, us[1].Address, report(start, 1, 0, 42))
	ranking, err := f.Explain(start, Request{Project: 42})
	require.NoError(t, err)
	assert.Equal(t, us[1].Address, ranking[0].Address)
	assert.True(t, ranking[0].Picked)
	assert.Equal(t, "cached", ranking[0].Cache)
	assert.Greater(t, ranking[1].Cost.Fetch, ranking[0].Cost.Fetch)
	assert.Zero(t, f.InFlight())
}

func BenchmarkClaim(b *testing.B) {
	for _, n := range []int{14, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f := newFixture(b, "expected", n)
			for _, u := range upstreams(n) {
				f.Report(start, u.Address, report(start, 3, 0, 1, 2, 3, 4, 5, 6, 7, 8))
			}
			now := start.Add(time.Second)
			b.ReportAllocs()
			for i := range b.N {
				l, err := f.Claim(now, Request{Project: uint64(i) % 64}, nil)
				if err != nil {
					b.Fatal(err)
				}
				l.Answered(now, true, nil)
				l.Done(now, Answered)
			}
		})
	}
}

func TestFetchTimesAreLearnedWithoutHints(t *testing.T) {
	f := newFixture(t, "random", 1)
	address := upstreams(1)[0].Address
	now := start
	for range 40 {
		l, err := f.Claim(now, Request{Project: 5}, nil) // not cached: the answer takes a fetch and 2 s
		require.NoError(t, err)
		require.Equal(t, selection.NotCached, l.Cache)
		l.Answered(now.Add(32*time.Second), true, nil)
		l.Done(now.Add(32*time.Second), Answered)
		now = now.Add(100 * time.Second)
		f.Report(now, address, report(now, 0, 0, 5))
		l, err = f.Claim(now, Request{Project: 5}, nil)
		require.NoError(t, err)
		require.Equal(t, selection.Cached, l.Cache)
		l.Answered(now.Add(2*time.Second), true, nil)
		l.Done(now.Add(2*time.Second), Answered)
		now = now.Add(100 * time.Second)
		f.Report(now, address, report(now, 0, 0))
	}
	assert.InEpsilon(t, 30, f.fetches.expected(5), 0.1)
	assert.InEpsilon(t, 30, f.fetches.expected(6), 0.3, "a project never seen is expected to be like the others")
}

// An upstream that refuses at once looks idle; it must not attract every job.
func TestARefusalForLoadHoldsJobsOff(t *testing.T) {
	f := newFixture(t, "least-in-flight", 2)
	l, err := f.Claim(start, Request{}, nil)
	require.NoError(t, err)
	refusing := l.Address
	l.Done(start, NotStarted)
	now := start.Add(999 * time.Millisecond)
	for range 20 {
		l, err := f.Claim(now, Request{}, nil)
		require.NoError(t, err)
		require.NotEqual(t, refusing, l.Address)
	}
	l, err = f.Claim(start.Add(time.Second), Request{}, nil)
	require.NoError(t, err)
	assert.Equal(t, refusing, l.Address)
}
