package pool

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/breaker"
	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/pkg/selection"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// testGate is a gate that can be full: then it refuses, whatever its state.
type testGate struct {
	health.Gate
	full bool
}

func (g *testGate) allow() (func(error), error) {
	if g.full {
		return nil, assert.AnError
	}
	return g.Gate()
}

// cache returns whether a project's data is cached at m.
func (f *fixture) cache(m *member, project uint64, now time.Time) selection.Cache {
	return m.cached.status(project, m.cached.listingFresh(now, f.cfg.Interval))
}

// projects is a CacheSet over a map.
type projects map[uint64]bool

func (p projects) Contains(project uint64) bool { return p[project] }
func (p projects) Bytes(uint64) float64         { return 0 }
func (p projects) Len() int                     { return len(p) }

type fixture struct {
	*Pool
	t     testing.TB
	gates []*testGate // in the order in which they were made

	foreseen int             // claims whose failure Openings foresaw
	moved    map[Waiter]bool // jobs that were moved
}

// Claim is Pool.Claim. It checks that a claim fails if Openings refuse the job.
func (f *fixture) Claim(now time.Time, r Request, tried []string) (*Assignment, error) {
	refused := r.Among == nil && f.Openings(now, r.Heavy).Refuses(r, NewAddressSet(tried))
	a, err := f.Pool.Claim(now, r, NewAddressSet(tried))
	if refused {
		f.foreseen++
		require.Error(f.t, err)
	}
	return a, err
}

// places returns the set of these addresses; nil for nil.
func places(addresses []string) *AddressSet {
	if addresses == nil {
		return nil
	}
	return NewAddressSet(addresses)
}

// must is a Claim that succeeds.
func (f *fixture) must(now time.Time, r Request, tried []string) *Assignment {
	f.t.Helper()
	a, err := f.Claim(now, r, tried)
	require.NoError(f.t, err)
	return a
}

func newFixture(t testing.TB, policy string, n int) *fixture {
	t.Helper()
	choose, err := selection.New(policy)
	require.NoError(t, err)
	detector, err := overload.Settings{Policy: "threshold", Stalled: 100, Reset: 0.8}.Detector()
	require.NoError(t, err)
	f := &fixture{t: t, moved: map[Waiter]bool{}}
	f.Pool, err = New(Config{
		Settings: Settings{Policy: choose, Detector: detector, Interval: 5 * time.Second, Breaker: health.Default()},
		Gate: func(trips func(int) bool) health.Gate {
			f.gates = append(f.gates, &testGate{Gate: breaker.NewSimulated(trips)})
			return f.gates[len(f.gates)-1].allow
		},
		Rand: rand.New(rand.NewPCG(1, 2)),
	})
	require.NoError(t, err)
	f.Set(start, upstreams(n))
	return f
}

// answer ends an attempt with a complete response.
func answer(a *Assignment, now time.Time) {
	a.Answered(now, true, nil)
	a.Done(now, Answered)
}

// shut opens the breaker of an upstream for about a year, or closes it.
func (f *fixture) shut(address string, on bool) {
	b := &f.members[address].breaker
	if b.Status(start).State != health.Closed {
		b.Refused(start)
	}
	if b.Reached(start); on {
		f.breakers.Open = 365 * 24 * time.Hour
		b.Refused(start)
		f.breakers.Open = f.cfg.Breaker.Open
	}
}

// isShut reports whether the breaker of an upstream lets no job through, not even one that finds no other upstream.
func (f *fixture) isShut(now time.Time, address string) bool {
	b := &f.members[address].breaker
	return !b.Ready(now) && !b.ReadyEarly(now)
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
		Cores: 16, CoresBusy: -1, Completed: -1, Wait: math.NaN(), Cached: set,
	}
}

// Invariants 1 to 5 over random histories, against a naive list of open assignments.
func TestRandomHistories(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 0))
		f := newFixture(t, selection.Names()[int(seed)%len(selection.Names())], 5)
		now := start
		var open []*Assignment
		next := upstreams(5)
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
				var among []string
				if rng.IntN(4) == 0 {
					among = []string{fmt.Sprintf("10.0.0.%d:9000", rng.IntN(7)), fmt.Sprintf("10.0.0.%d:9000", rng.IntN(7))}
				}
				heavy, marked, ordinary, free := rng.IntN(3) == 0, map[string]bool{}, false, false
				for _, s := range f.States(now) {
					marked[s.Address], ordinary = s.Heavy, ordinary || !s.Heavy
					free = free || s.Heavy && s.Eligible && !slices.Contains(tried, s.Address) && (among == nil || slices.Contains(among, s.Address))
				}
				wasShut := map[string]bool{}
				for address := range in {
					wasShut[address] = f.isShut(now, address)
				}
				panics, foreseen, early := InPanic(f.States(now)), f.foreseen, slices.ContainsFunc(f.set, func(m *member) bool { return m.breaker.ReadyEarly(now) })
				l, err := f.Claim(now, Request{Project: rng.Uint64N(20), Priority: selection.Priority(rng.IntN(2)), Heavy: heavy, Among: places(among), Fallbacks: rng.IntN(4)}, tried)
				if err != nil {
					require.True(t, among != nil || early || f.foreseen > foreseen, "the failure was not foreseen")
					continue
				}
				mixed := ordinary && slices.Contains(slices.Collect(maps.Values(marked)), true)
				require.True(t, panics == l.Panic || mixed && panics)
				u := l.Choice
				require.True(t, in[u.Address], "claimed an upstream that left")
				require.NotContains(t, tried, u.Address)
				require.True(t, !heavy || !free || !ordinary || marked[u.Address], "a heavy job at another upstream, while one for heavy jobs is eligible")
				for i, a := range append(l.Fallbacks, u.Address) {
					require.True(t, heavy || !ordinary || !marked[a], "an ordinary job at an upstream for heavy jobs")
					require.True(t, in[a], "an upstream that left")
					require.NotContains(t, tried, a)
					require.True(t, among == nil || slices.Contains(among, a), "not one of the allowed addresses")
					require.NotContains(t, l.Fallbacks[:min(i, len(l.Fallbacks))], a, "named twice")
				}
				require.True(t, l.Panic || !wasShut[u.Address], "claimed behind a breaker that is open")
				open = append(open, l)
			case k < 17 && len(open) > 0:
				i := rng.IntN(len(open))
				if rng.IntN(4) == 0 {
					if to := open[i].Move(now, fmt.Sprintf("10.0.0.%d:9000", rng.IntN(8))); to != nil {
						open[i] = to
					}
				}
				if rng.IntN(2) == 0 {
					open[i].Answered(now, true, nil)
				}
				if rng.IntN(4) == 0 {
					open[i].ConnectionRefused(now)
				}
				open[i].Done(now, Outcome(rng.IntN(Outcomes)))
				open[i].Done(now, Answered) // a second end changes nothing
				open = slices.Delete(open, i, i+1)
			case k == 17:
				us := next // was prepared at the last change
				next = upstreams(7)
				rng.Shuffle(len(next), func(i, j int) { next[i], next[j] = next[j], next[i] })
				next = next[:rng.IntN(len(next)+1)]
				for i := range next {
					next[i].Heavy, next[i].Draining = rng.IntN(3) == 0, rng.IntN(6) == 0
				}
				f.Prepare(next)
				f.Set(now, append(us, us...)) // every one named twice
				in = map[string]bool{}
				for _, u := range us {
					in[u.Address] = true
				}
			case k == 18:
				for address := range in {
					f.shut(address, rng.IntN(3) == 0)
				}
			default:
				a := fmt.Sprintf("10.0.0.%d:9000", rng.IntN(7))
				if rng.IntN(4) == 0 {
					f.suspect(now, a)
					break
				}
				f.Report(now, a, report(now.Add(-time.Duration(rng.IntN(3000))*time.Millisecond), float64(rng.IntN(30)), float64(rng.IntN(150)), rng.Uint64N(20)))
			}
			want, ofProject := map[string]int{}, map[uint64]int{}
			for _, l := range open {
				require.Same(t, &l.sent, f.members[l.Address].unanswered.jobs[l.number])
				want[l.Address]++
				ofProject[l.project.id]++
			}
			for _, m := range f.members {
				awaited := 0
				for _, n := range m.unanswered.ofProject {
					awaited += n
				}
				require.Equal(t, len(m.unanswered.jobs), awaited)
			}
			for project := range uint64(20) {
				require.Equal(t, ofProject[project], f.Open(project), "open jobs of project %d", project)
			}
			require.Equal(t, len(open), f.InFlight())
			require.Len(t, f.States(now), len(in))
			for _, s := range f.States(now) {
				require.Equal(t, want[s.Address], s.InFlight, "%s", s.Address)
			}
		}
		for _, l := range open { // then nothing is counted anywhere
			l.Done(now, Answered)
		}
		require.Zero(t, f.InFlight())
		for _, m := range f.members {
			require.Equal(t, []int{0, 0, 0}, []int{m.load.inFlight, len(m.unanswered.jobs), len(m.unanswered.ofProject)})
		}
	}
}

// A large set is prepared in steps, between which jobs can claim upstreams. Then Set creates nothing.
func TestALargeSetIsPreparedInSteps(t *testing.T) {
	f, us := newFixture(t, "random", 1), upstreams(3*setAtOnce+1)
	for rest := us; len(rest) > 0; {
		before := len(f.gates)
		rest = f.Prepare(rest)
		require.LessOrEqual(t, len(f.gates)-before, setAtOnce)
		require.Equal(t, us[0].Address, f.must(start, Request{}, nil).Address)
	}
	f.Set(start, us)
	assert.Len(t, f.gates, len(us))
	assert.Equal(t, len(us), f.Len())
	f.Prepare([]Upstream{{Address: "10.9.9.9:1"}})
	f.Set(start, us)
	assert.Len(t, f.members, len(us), "one that did not join is forgotten")
}

// Nothing that was known of an upstream counts after it restarts in place.
func TestARestartedUpstreamIsLikeANewOne(t *testing.T) {
	f, us := newFixture(t, "expected", 2), upstreams(2)
	us[0].StartedAt = start
	f.Set(start, us)
	address, prompt := us[0].Address, chain(1)
	only := places([]string{address})
	prompt.Among = only
	answer(f.must(start, prompt, nil), start.Add(time.Second))
	var waiting []*Assignment
	for project := range uint64(20) {
		a := f.must(start, Request{Project: project + 1, Among: only}, nil)
		if waiting = append(waiting, a); project%2 == 0 {
			a.Answered(start.Add(time.Second), true, nil)
		}
	}
	f.Report(start.Add(time.Second), us[1].Address, report(start.Add(time.Second), 0, 0, 5))
	now := start
	for range 3 {
		now = now.Add(5 * time.Second)
		f.Report(now, address, report(now, 0, 0))
	}
	now = now.Add(5 * time.Second)
	r := report(now, 0, 1000)
	r.Cores, r.Cached = 1<<20, claimed(20_000)
	f.Report(now, address, r)
	f.ReportFailed(now.Add(time.Second), address, errSilent)
	known := f.state(now, address)
	assert.Equal(t, "1048576 cores, fewer than half of this sidecar's jobs there, 20000 cached projects, more than 16 times as many as others", known.Implausible)
	assert.Equal(t, []float64{0, 1000, 1, 0}, []float64{known.Level, known.Stalled, known.Latency, known.ReportAge})
	assert.Positive(t, known.Assumed)

	for _, a := range waiting {
		a.Done(now, Gone)
	}
	restart := start.Add(time.Minute)
	us[0].StartedAt = restart
	f.Set(restart, us)
	fresh := newFixture(t, "expected", 2)
	fresh.Set(restart, us)
	assert.Equal(t, fresh.state(restart, address), f.state(restart, address))
	ranked, err := f.Explain(restart, prompt)
	require.NoError(t, err)
	assert.Equal(t, "none", ranked[0].Cache)
	f.ReportFailed(restart, address, errSilent)
	assert.Empty(t, f.state(restart, address).Suspect, "it has not reported since")
}

// New settings apply at once. Detectors keep their state if the settings have none.
func TestOtherSettings(t *testing.T) {
	f, u, w := newFixture(t, "random", 1), upstreams(1)[0], &witness{}
	f.Report(start, u.Address, report(start, 0, 1000))
	require.Zero(t, f.state(start, u.Address).Level)
	f.SetSettings(Settings{Policy: w, Interval: time.Minute, Breaker: health.Default()})
	s := f.state(start.Add(3*time.Minute), u.Address)
	assert.Zero(t, s.Level)
	assert.True(t, s.ReportFresh, "the new interval counts")
	takesAll := func(overload.Sample) overload.Level { return 1 }
	f.SetSettings(Settings{Policy: w, Interval: time.Minute, Detector: func() overload.Detector { return takesAll }})
	assert.Equal(t, 1.0, f.state(start, u.Address).Level)
	f.must(start, Request{Project: 7}, nil)
	assert.Equal(t, uint64(7), w.job.Project, "the new policy picks")
	assert.Panics(t, func() { f.SetSettings(Settings{Policy: w}) })
	assert.Panics(t, func() { f.SetSettings(Settings{Interval: time.Minute}) })
}
