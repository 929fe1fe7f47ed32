package pool

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/test/dump"
)

// with gives the pool a shadow policy.
func (f *fixture) with(t testing.TB, shadow string) *fixture {
	t.Helper()
	policy, err := selection.New(shadow)
	require.NoError(t, err)
	f.cfg.Shadow = &Shadow{Policy: policy, Rand: rand.New(rand.NewPCG(3, 4))}
	return f
}

// The shadow's choice is recorded beside the policy's, with its cost by the policy.
func TestTheShadowsChoice(t *testing.T) {
	f := newFixture(t, "expected", 2).with(t, "least-in-flight")
	here, there := upstreams(2)[0].Address, upstreams(2)[1].Address
	f.Report(start, here, report(start, 1, 0, 42))
	f.Report(start, there, report(start, 1, 0))
	first := f.must(start, Request{Project: 42}, nil)
	assert.Equal(t, here, first.Address)

	ranking, err := f.Explain(start, Request{Project: 42})
	require.NoError(t, err)
	assert.Equal(t, []bool{false, true}, []bool{ranking[0].Shadow, ranking[1].Shadow}, "it has fewer jobs")
	second := f.must(start, Request{Project: 42, Fallbacks: 1}, nil)
	assert.Equal(t, here, second.Address)
	assert.Equal(t, there, second.Shadow)
	assert.Positive(t, second.ShadowCost)
	assert.Equal(t, ranking[1].Cost.Total, second.ShadowCost)

	last := f.must(start, Request{Project: 42}, []string{there})
	assert.Equal(t, here, last.Shadow, "it has the same upstreams to choose among")
	assert.Equal(t, last.Cost.Total, last.ShadowCost)
	assert.Equal(t, []selection.Cache{selection.NotCached, selection.Cached}, []selection.Cache{second.ShadowCache, last.ShadowCache})
}

// Over random histories, a pool makes the same choices with a shadow, and with queries between the events, as without.
func TestNeitherShadowsNorQueriesChangeChoices(t *testing.T) {
	names, others := selection.Names(), 0
	for seed := range uint64(len(names) * len(names)) {
		policy, shadow := names[int(seed)%len(names)], names[int(seed)/len(names)]
		n, rng := []int{5, 5, 5, 5, 80}[seed%5], rand.New(rand.NewPCG(seed, 0))
		pools := []*fixture{newFixture(t, policy, n), newFixture(t, policy, n).with(t, shadow), newFixture(t, policy, n).with(t, shadow)}
		var open [3][]*Assignment
		now := start
		for step := range 250 {
			now = now.Add(time.Duration(rng.IntN(1000)) * time.Millisecond)
			address := upstreams(n + 2)[rng.IntN(n+2)].Address
			r := Request{Project: rng.Uint64N(20), Priority: selection.Priority(rng.IntN(2)), Fallbacks: rng.IntN(3)}
			if r.Project > 15 {
				r.Data = &intake.Parts{Set: true, Parts: []intake.Part{{Key: r.Project}, {Key: rng.Uint64N(15) + 1}}}
			}
			load := report(now, float64(rng.IntN(30)), float64(rng.IntN(110)), rng.Uint64N(20), rng.Uint64N(20))
			load.Cached = growing{load.Cached.(projects)}
			end, set, outcome := rng.IntN(1+len(open[0])), upstreams(n-2+rng.IntN(4)), Outcome(rng.IntN(Outcomes))
			event := rng.IntN(20)
			var chose [3]Choice
			for i, f := range pools {
				f.cfg.Probe, f.norms.service = true, 5
				if i == 2 && step%10 == 0 {
					for _, query := range queries {
						query(f, now)
					}
				}
				switch {
				case event == 0:
					f.Set(now, set)
				case event == 1:
					f.Checked(now, address, assert.AnError)
				case event == 2:
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
			require.Equal(t, chose[1], chose[2], "%s with queries", policy)
			require.Equal(t, pools[1].States(now), pools[2].States(now), policy)
			if s := chose[1].Shadow; s != "" && s != chose[1].Address {
				others++
			}
			chose[1].Shadow, chose[1].ShadowCost, chose[1].ShadowCache = "", 0, 0
			require.Equal(t, chose[0], chose[1], "%s with the shadow %s", policy, shadow)
		}
	}
	assert.Greater(t, others, 1000, "the shadow has mostly the same mind: this shows little")
}

// growing is a listing in which every project has a size of its own.
type growing struct{ projects }

func (growing) Bytes(project uint64) float64 { return float64(project+1) * 1e6 }

// BenchmarkShadow measures what a shadow adds to a claim among 14 upstreams.
func BenchmarkShadow(b *testing.B) {
	for _, name := range selection.Names() {
		b.Run(name, func(b *testing.B) {
			f := newFixture(b, "expected", 14).with(b, name)
			for _, u := range upstreams(14) {
				f.Report(start, u.Address, report(start, 3, 0, 1, 2, 3, 4, 5, 6, 7, 8))
			}
			c, a := &candidates{}, &Assignment{}
			f.fillNeed(&c.need, &Request{Project: 5}, true)
			require.NoError(b, f.eligible(start, c, nil, nil, f.cfg.Rand))
			c.choose(f.cfg.Policy, &c.costs, f.cfg.Rand)
			b.ReportAllocs()
			for b.Loop() {
				a.consultShadow(f.cfg.Shadow, c)
			}
		})
	}
}

// everyKind is one request of each kind.
var everyKind = []Request{
	{}, {Project: 3, Priority: selection.High}, {Project: 99, Bytes: 7, LengthKey: 5}, {Project: 4, Among: places([]string{upstreams(2)[1].Address})},
	{Project: 8, Data: &intake.Parts{Set: true, Parts: []intake.Part{{Key: 8}, {Key: 9}, {Key: 77}}}}, chain(1, 2, 3), chain(1, 4),
}

// forEach queries for each of these requests, and for two that no job has had.
func forEach(query func(f *fixture, now time.Time, r Request)) func(*fixture, time.Time) {
	return func(f *fixture, now time.Time) {
		for _, r := range append(slices.Clip(everyKind), Request{Project: 1234}, chain(1, 2, 5)) {
			query(f, now, r)
		}
	}
}

var wasTried = places([]string{upstreams(2)[0].Address})

// queries are the methods of Pool that change nothing.
var queries = map[string]func(f *fixture, now time.Time){
	"AllTried":   func(f *fixture, now time.Time) { f.AllTried(now, wasTried, false) },
	"Explain":    forEach(func(f *fixture, now time.Time, r Request) { _, _ = f.Explain(now, r) }),
	"IsFull":     func(f *fixture, now time.Time) { f.IsFull(now) },
	"IsHeavy":    forEach(func(f *fixture, _ time.Time, r Request) { f.IsHeavy(r) }),
	"Holders":    func(f *fixture, now time.Time) { f.Holders(now, []uint64{3, 8, 99}) },
	"InFlight":   func(f *fixture, _ time.Time) { f.InFlight() },
	"Len":        func(f *fixture, _ time.Time) { f.Len() },
	"Lengths":    func(f *fixture, _ time.Time) { f.Lengths() },
	"ListStates": func(f *fixture, now time.Time) { f.ListStates(now).Next(now, make([]State, 0, 3)) },
	"Open":       forEach(func(f *fixture, _ time.Time, r Request) { f.Open(r.Project) }),
	"Openings":   forEach(func(f *fixture, now time.Time, r Request) { f.Openings(now, r.Heavy).Refuses(r, wasTried) }),
	"Probes":     forEach(func(f *fixture, now time.Time, r Request) { f.Probes(now, r, nil) }),
	"States":     func(f *fixture, now time.Time) { f.States(now) },
}

// commands are the methods of Pool that change it.
var commands = []string{
	"CacheChanged", "Checked", "Claim", "Drain", "Forget", "Listing", "Prepare", "Probed", "Reconsider", "Replace", "Report", "ReportFailed",
	"Set", "SetLengths", "SetSettings", "TakePolls", "Withdrawals",
}

// memory is the fields that queries can change: what is computed again for each job, and what is kept to compute it faster.
var memory = []string{"Pool.scratch", "acceptance.counts", "projectState.shortlist", "projectState.shortlistSet"}

// Queries change no field.
func TestQueriesChangeNoField(t *testing.T) {
	for of, i := reflect.TypeFor[*Pool](), 0; i < of.NumMethod(); i++ {
		name := of.Method(i).Name
		_, isQuery := queries[name]
		assert.NotEqual(t, isQuery, slices.Contains(commands, name), "%s is either a query or a command", name)
	}
	for _, n := range []int{5, 80} {
		f := newFixture(t, "expected", n).with(t, "dynamic")
		f.cfg.Probe, f.cfg.Withdraw, f.norms.service = true, true, 5
		us := upstreams(n)
		us[2].Heavy, us[3].StopsAt = true, start.Add(time.Minute)
		f.Set(start, us)
		f.cfg.Heavy.Expected = time.Nanosecond
		now := start.Add(time.Second)
		for i, u := range us {
			r := report(now, float64(3*i%20), float64(i%7), 3, 8)
			r.Cached = growing{r.Cached.(projects)}
			f.Report(now, u.Address, r)
		}
		for i := range 30 {
			now = now.Add(time.Second)
			a := f.must(now, everyKind[i%len(everyKind)], nil)
			if i%2 == 0 {
				answer(a, now.Add(time.Second/2))
			}
		}
		for range 2 {
			f.ReportFailed(now, us[1].Address, health.ErrNoResponse)
			f.Checked(now, us[4].Address, assert.AnError)
		}
		before := dump.Of(f.Pool, memory...)
		for name, query := range queries {
			for _, later := range []time.Duration{0, time.Minute} {
				query(f, now.Add(later))
			}
			require.Equal(t, before, dump.Of(f.Pool, memory...), name)
		}
	}
}
