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
	full     bool // it is ready, but refuses
	hastened bool
	early    bool // it opens when it is hastened
	entered  int
	verdicts []breaker.Verdict
	heard    [3]float64
}

func (g *switchGate) Ready(time.Time) bool { return !g.shut }

func (g *switchGate) Hear(_ time.Time, ended, failed, others float64) {
	g.heard = [3]float64{ended, failed, others}
}

func (g *switchGate) Hasten() {
	g.hastened = true
	g.shut = g.shut && !g.early
}

func (g *switchGate) Status() breaker.Status { return breaker.Status{} }

func (g *switchGate) Enter(time.Time) (breaker.Entry, bool) {
	if g.shut || g.full {
		return breaker.Entry{}, false
	}
	g.entered++
	return breaker.Entry{}, true
}

func (g *switchGate) Tell(_ time.Time, _ *breaker.Entry, v breaker.Verdict) {
	g.verdicts = append(g.verdicts, v)
}

// projects is a CacheSet over a map.
type projects map[uint64]bool

func (p projects) Contains(project uint64) bool { return p[project] }
func (p projects) Bytes(uint64) float64         { return 0 }
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
		Settings: Settings{Policy: choose, Detector: detector, Interval: 5 * time.Second},
		Breakers: breakers(t), Rand: rand.New(rand.NewPCG(1, 2)),
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
				var among []string
				if rng.IntN(4) == 0 {
					among = []string{fmt.Sprintf("10.0.0.%d:9000", rng.IntN(7)), fmt.Sprintf("10.0.0.%d:9000", rng.IntN(7))}
				}
				l, err := f.Claim(now, Request{Project: rng.Uint64N(20), Priority: selection.Priority(rng.IntN(2)), Among: among, Fallbacks: rng.IntN(4)}, tried)
				if err != nil {
					continue
				}
				u := l.Choice
				require.True(t, in[u.Address], "claimed an upstream that left")
				require.NotContains(t, tried, u.Address)
				for i, a := range append(l.Fallbacks, u.Address) {
					require.True(t, in[a], "an upstream that left")
					require.NotContains(t, tried, a)
					require.True(t, among == nil || slices.Contains(among, a), "not one of those asked for")
					require.NotContains(t, l.Fallbacks[:min(i, len(l.Fallbacks))], a, "named twice")
				}
				require.True(t, l.Panic || !f.gates[u.Address].shut, "claimed behind a shut gate")
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
			want, ofProject := map[string]int{}, map[uint64]int{}
			for _, l := range open {
				want[l.Address]++
				ofProject[l.project.id]++
			}
			for project := range uint64(20) {
				require.Equal(t, ofProject[project], f.Open(project), "open jobs of project %d", project)
			}
			require.Equal(t, len(open), f.InFlight())
			require.Equal(t, slices.DeleteFunc(slices.Clone(f.set), func(m *member) bool { return want[m.Address] == 0 }), f.busy)
			require.Len(t, f.States(now), len(in))
			for _, s := range f.States(now) {
				require.Equal(t, want[s.Address], s.InFlight, "%s", s.Address)
			}
		}
	}
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

// An upstream that left and comes back with jobs still open there gets the
// gate that is kept for its address now: the one that others look at.
func TestAnUpstreamThatReturnsHasTheGateOfItsAddress(t *testing.T) {
	f := newFixture(t, "least-in-flight", 1)
	first := f.set[0].Address
	l, err := f.Claim(start, Request{}, nil)
	require.NoError(t, err)
	f.Set(start, nil)
	delete(f.gates, first) // as the breakers forget those that left
	f.Set(start.Add(time.Second), []Upstream{{Address: first}})
	require.Equal(t, 1, f.InFlight(), "its job is counted still")
	require.Contains(t, f.gates, first)
	f.gates[first].shut = true
	assert.False(t, f.States(start)[0].Eligible)
	f.gates[first].shut = false
	l.Done(start.Add(time.Second), Answered)
	assert.Zero(t, f.InFlight())
}

// Other settings hold from now on. What detectors have seen stays if they are not named.
func TestOtherSettings(t *testing.T) {
	f, u, w := newFixture(t, "random", 1), upstreams(1)[0], &witness{}
	f.Report(start, u.Address, report(start, 0, 1000))
	require.Zero(t, f.state(start, u.Address).Level)
	f.SetSettings(Settings{Policy: w, Interval: time.Minute})
	s := f.state(start.Add(3*time.Minute), u.Address)
	assert.Zero(t, s.Level)
	assert.True(t, s.ReportFresh, "the new interval counts")
	f.SetSettings(Settings{Policy: w, Interval: time.Minute, Detector: func() overload.Detector { return overload.None{} }})
	assert.Equal(t, 1.0, f.state(start, u.Address).Level)
	_, err := f.Claim(start, Request{Project: 7}, nil)
	require.NoError(t, err)
	assert.Equal(t, uint64(7), w.job.Project, "the new policy picks")
	assert.Panics(t, func() { f.SetSettings(Settings{Policy: w}) })
	assert.Panics(t, func() { f.SetSettings(Settings{Interval: time.Minute}) })
}
