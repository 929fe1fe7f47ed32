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
	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/internal/recent"
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
	return m.cached.has(project, m.cached.counts(now, f.cfg.Interval))
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

	foreseen int // claims whose failure Openings foresaw
}

// Claim is Pool.Claim. It checks that a claim fails if Openings refuse the job.
func (f *fixture) Claim(now time.Time, r Request, tried []string) (*Assignment, error) {
	refused := r.Among == nil && f.Openings(now).Refuse(r, NewPlaces(tried))
	a, err := f.Pool.Claim(now, r, NewPlaces(tried))
	if refused {
		f.foreseen++
		require.Error(f.t, err)
	}
	return a, err
}

// places returns the set of these addresses; nil for nil.
func places(addresses []string) *Places {
	if addresses == nil {
		return nil
	}
	return NewPlaces(addresses)
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
	f := &fixture{t: t}
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
				l, err := f.Claim(now, Request{Project: rng.Uint64N(20), Priority: selection.Priority(rng.IntN(2)), Heavy: heavy, Among: places(among), Fallbacks: rng.IntN(4)}, tried)
				if err != nil {
					continue
				}
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
				open[i].Done(now, Outcome(rng.IntN(Outcomes)))
				open[i].Done(now, Answered) // a second end changes nothing
				open = slices.Delete(open, i, i+1)
			case k == 17:
				us := upstreams(7)
				rng.Shuffle(len(us), func(i, j int) { us[i], us[j] = us[j], us[i] })
				us = us[:rng.IntN(len(us)+1)]
				for i := range us {
					us[i].Heavy, us[i].Draining = rng.IntN(3) == 0, rng.IntN(6) == 0
				}
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
	}
}

func TestRestartForgetsTheCache(t *testing.T) {
	f, us := newFixture(t, "random", 1), upstreams(1)
	us[0].StartedAt = start
	f.Set(start, us)
	f.Report(start.Add(time.Second), us[0].Address, report(start.Add(time.Second), 0, 0, 5))
	require.Equal(t, 1, f.States(start)[0].Cached)
	m := f.set[0]
	m.figures = figures{cores: 9, rate: rate{done: 1}, absurd: "absurd", doubts: doubts{contrary: 1, doubted: true}}
	m.cached.tooLong, m.load.level, m.latency.value, m.slowness.part = "too long", 0, 1, 1
	m.cached.assumed.Put(7, start)
	f.ReportFailed(start.Add(2*time.Second), us[0].Address, errSilent)
	block := f.prompts.Prompt(chain(1).Data.Parts)
	m.cached.prompts.Send(start, f.prompts, block).Answered()
	us[0].StartedAt = start.Add(time.Minute)
	f.Set(start.Add(time.Minute), us)
	assert.Zero(t, f.States(start)[0].Cached)
	assert.Equal(t, figures{}, m.figures)
	assert.Equal(t, []any{peakEWMA{}, slowness{}, 1.0}, []any{m.latency, m.slowness, float64(m.load.level)})
	assert.Equal(t, []any{"", recent.Keys{}}, []any{m.cached.tooLong, m.cached.assumed})
	assert.Equal(t, health.Suspicion{Address: us[0].Address}, m.suspicion)
	assert.True(t, m.cached.at.IsZero() && m.load.at.IsZero())
	assert.Zero(t, m.cached.prompts.Hit(start, block))
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

// Queries change nothing: a pool that is queried between the events of a random history makes the same choices as one that
// is not.
func TestQueriesChangeNothing(t *testing.T) {
	for seed := range uint64(3 * len(selection.Names())) {
		policy, rng := selection.Names()[int(seed)%len(selection.Names())], rand.New(rand.NewPCG(seed, 5))
		n := []int{5, 80}[seed%2]
		pools := [...]*fixture{newFixture(t, policy, n), newFixture(t, policy, n).with(t, "expected")}
		pools[0].with(t, "expected")
		ask := func(f *fixture, now time.Time) {
			addresses := upstreams(n)
			for _, r := range []Request{
				{}, {Project: 3, Priority: selection.High}, {Project: 99, Bytes: 7}, {Project: 4, Among: places([]string{addresses[1].Address})},
				{Project: 8, Data: &intake.Parts{Set: true, Parts: []intake.Part{{Key: 8}, {Key: 9}, {Key: 77}}}},
				{Project: 6, Data: &intake.Parts{Parts: []intake.Part{{Key: 11, Bytes: 64}, {Key: 12, Bytes: 64}}}},
			} {
				_, _ = f.Explain(now, r)
				f.Probes(now, r, nil)
			}
			states := f.States(now)
			f.Full(now)
			f.AllTried(now, places([]string{addresses[0].Address}), false)
			f.Open(3)
			assert.Equal(t, states, f.States(now))
		}
		var open [2][]*Assignment
		now := start
		for range 300 {
			now = now.Add(time.Duration(rng.IntN(2000)) * time.Millisecond)
			event, at, end := rng.IntN(20), rng.IntN(n), rng.IntN(1+len(open[0]))
			r := Request{Project: rng.Uint64N(12), Priority: selection.Priority(rng.IntN(2)), Fallbacks: rng.IntN(2)}
			if r.Project > 9 {
				r.Data = &intake.Parts{Set: true, Parts: []intake.Part{{Key: r.Project}, {Key: rng.Uint64N(9) + 1}}}
			}
			load, outcome := report(now, float64(rng.IntN(20)), float64(rng.IntN(110)), rng.Uint64N(12), rng.Uint64N(12)), Outcome(rng.IntN(Outcomes))
			load.Cached = growing{load.Cached.(projects)}
			var chose [2]Choice
			for i, f := range pools {
				f.cfg.Probe, f.norms.service = true, 5
				if i == 1 {
					ask(f, now)
				}
				address := upstreams(n)[at].Address
				switch {
				case event == 0:
					f.Checked(now, address, assert.AnError)
				case event == 1:
					f.ReportFailed(now, address, health.ErrNoResponse)
				case event < 6:
					f.Report(now, address, load)
				case event < 12 && end < len(open[i]):
					open[i][end].Answered(now, outcome == Answered, nil)
					open[i][end].Done(now, outcome)
					open[i] = slices.Delete(open[i], end, end+1)
				default:
					if a, err := f.Claim(now, r, []string{address}); err == nil {
						open[i], chose[i] = append(open[i], a), a.Choice
					}
				}
			}
			require.Equal(t, chose[0], chose[1], policy)
			require.Equal(t, pools[0].States(now), pools[1].States(now), policy)
		}
	}
}

// growing is a listing in which every project has a size of its own.
type growing struct{ projects }

func (growing) Bytes(project uint64) float64 { return float64(project+1) * 1e6 }
