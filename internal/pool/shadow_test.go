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

// A pool with a shadow makes the same choices as one without, over random histories.
func TestTheShadowChangesNothing(t *testing.T) {
	names, others := selection.Names(), 0
	for seed := range uint64(len(names) * len(names)) {
		policy, shadow := names[int(seed)%len(names)], names[int(seed)/len(names)]
		rng := rand.New(rand.NewPCG(seed, 0))
		pools := []*fixture{newFixture(t, policy, 5), newFixture(t, policy, 5).with(t, shadow)}
		var open [2][]*Assignment
		now := start
		for range 500 {
			now = now.Add(time.Duration(rng.IntN(500)) * time.Millisecond)
			address := upstreams(7)[rng.IntN(7)].Address
			r := Request{Project: rng.Uint64N(20), Priority: selection.Priority(rng.IntN(2)), Fallbacks: rng.IntN(3)}
			next := report(now, float64(rng.IntN(30)), float64(rng.IntN(110)), rng.Uint64N(20), rng.Uint64N(20))
			end, set, outcome := rng.IntN(1+len(open[0])), upstreams(1+rng.IntN(7)), Outcome(rng.IntN(Outcomes))
			event := rng.IntN(20)
			var chose [2]Choice
			for i, f := range pools {
				switch {
				case event == 0:
					f.Set(now, set)
				case event < 4:
					f.Report(now, address, next)
				case event < 10 && end < len(open[i]):
					open[i][end].Answered(now, outcome == Answered, nil)
					open[i][end].Done(now, outcome)
					open[i] = slices.Delete(open[i], end, end+1)
				default:
					if a, err := f.Claim(now, r, []string{address}); err == nil {
						open[i], chose[i] = append(open[i], a), a.Choice
					}
				}
			}
			if s := chose[1].Shadow; s != "" && s != chose[1].Address {
				others++
			}
			chose[1].Shadow, chose[1].ShadowCost, chose[1].ShadowCache = "", 0, 0
			require.Equal(t, chose[0], chose[1], "%s with the shadow %s", policy, shadow)
		}
	}
	assert.Greater(t, others, 1000, "the shadow has mostly the same mind: this shows little")
}

// BenchmarkShadow measures what a shadow adds to a claim among 14 upstreams.
func BenchmarkShadow(b *testing.B) {
	for _, name := range selection.Names() {
		b.Run(name, func(b *testing.B) {
			f := newFixture(b, "expected", 14).with(b, name)
			for _, u := range upstreams(14) {
				f.Report(start, u.Address, report(start, 3, 0, 1, 2, 3, 4, 5, 6, 7, 8))
			}
			c, a := &candidates{}, &Assignment{}
			f.need(&c.need, &Request{Project: 5}, true)
			require.NoError(b, f.eligible(start, c, nil, nil, f.cfg.Rand))
			c.choose(f.cfg.Policy, &c.costs, f.cfg.Rand)
			b.ReportAllocs()
			for b.Loop() {
				a.consultShadow(f.cfg.Shadow, c)
			}
		})
	}
}
