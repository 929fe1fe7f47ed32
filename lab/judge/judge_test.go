package judge

import (
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every draw is within its range, and the jobs have the load of the setting.
func TestSettingsAreWithinTheirRanges(t *testing.T) {
	require.GreaterOrEqual(t, len(Families()), 10)
	names := map[string]bool{}
	for _, f := range Families() {
		assert.False(t, names[f.Name], f.Name)
		names[f.Name] = true
		s := f.draw(Seed("x", f.Name))
		for name, is := range map[string]struct {
			value float64
			in    Range
		}{
			"load": {s.Load, f.Load}, "fetch": {s.Fetch, f.Fetch}, "upstreams": {float64(s.Fleet.Upstreams), f.Upstreams},
			"cores": {float64(s.Fleet.Cores), f.Cores}, "sidecars": {float64(s.Sidecars.Count), f.Sidecars}, "jobs": {float64(s.Workload.Jobs), f.Jobs},
		} {
			assert.GreaterOrEqual(t, is.value, is.in.Low-1e-9, "%s: %s", f.Name, name)
			assert.LessOrEqual(t, is.value, is.in.High+1e-9, "%s: %s", f.Name, name)
		}
		jobs, cache, err := s.Jobs(7)
		require.NoError(t, err, f.Name)
		assert.Positive(t, cache)
		work, fetch := 0.0, 0.0
		for _, j := range jobs {
			work += j.Work() - j.Load
			fetch += j.Load
		}
		assert.InEpsilon(t, s.Load, work/s.cores()/length.Seconds(), 1e-6, f.Name)
		assert.InEpsilon(t, s.Fetch, fetch/work, 1e-6, f.Name)
		assert.Equal(t, f.Hints, s.Sidecars.Hints)
	}
}

// tiny is a family of small settings.
func tiny(name string) Family {
	return usual(name, func(f *Family) {
		f.Jobs, f.Upstreams, f.Cores, f.Sidecars = Range{150, 300}, Range{2, 3}, Range{2, 4}, Range{2, 3}
	})
}

// The table does not depend on how many settings are simulated at once, and another hash draws
// other settings.
func TestJudgementsAreOfTheirHash(t *testing.T) {
	other := tiny("other")
	other.Hints = false
	table := func(hash string, parallel int) string {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(parallel))
		count := 0
		j, err := Judge(t.Context(), hash, []Family{tiny("tiny"), other}, func(ended, all int) {
			count++
			assert.Equal(t, []int{count, 2 * draws}, []int{ended, all})
		})
		require.NoError(t, err)
		var out strings.Builder
		require.NoError(t, j.WriteText(&out))
		assert.Contains(t, out.String(), "sources: "+hash+" (")
		assert.Contains(t, j.Line(), hash+": 2 families; medians over the best of all rivals: all waits ")
		return out.String()
	}
	first := table("0123", 1)
	assert.Equal(t, first, table("0123", 3))
	assert.NotEqual(t, first, table("0124", 2))
	assert.Regexp(t, `\ntiny +schedules +yes `, first)
	assert.Regexp(t, `\nother +schedules +no `, first)
}

// Every documented algorithm is simulated. The table has their names, and is the same for the same
// draw.
func TestDocuments(t *testing.T) {
	table := func(draw string) string {
		var out strings.Builder
		require.NoError(t, PlayDocuments(t.Context(), &out, draw, []Family{tiny("tiny")}))
		return out.String()
	}
	first := table("a")
	assert.Regexp(t, `\nfamily +baseline +random +dynamic +dagor +adaptive +breakwater +plan +hedged dynamic +home-step .*\ntiny( +[0-9.]+){16}\nmedian`, first)
	assert.Equal(t, first, table("a"))
	assert.NotEqual(t, first, table("b"))
}

func TestRatios(t *testing.T) {
	p := func(ours, best float64) played {
		p := played{ours: Outcome{Waits: ours, Time: 4, Fetches: 50}, alone: Outcome{Waits: 4}, tuned: make([]Contender, len(rivalKinds()))}
		for range rivalKinds() {
			p.bases, p.sums = append(p.bases, Outcome{Waits: 8, Time: 8}), append(p.sums, 10)
		}
		p.bases[1], p.sums[1] = Outcome{Waits: best, Time: 8, Fetches: 100}, 3
		return p
	}
	v := Verdict{Family: usual("a"), played: [draws]played{p(1, 4), p(9, 9), p(1, 2)}}
	ratios := v.ratios()
	assert.InDelta(t, 0.5, ratios[0], 1e-9, "a quarter, one and a half")
	assert.InDelta(t, 0.5, ratios[1], 1e-9)
	assert.InDelta(t, 1, ratios[2], 1e-9, "two waits below the floor")
	assert.InDelta(t, 0.5, ratios[len(headlines)], 1e-9, "the best with as many processes")
	assert.InDelta(t, math.Cbrt(9.0/8/8/8), ratios[len(headlines)+1], 1e-9, "in one process")
	assert.InDelta(t, math.Cbrt(9.0/4/4/4), ratios[len(headlines)+2], 1e-9, "over ours in one process")
	assert.InDelta(t, 0.5, ratios[len(headlines)+3], 1e-9, "ours in one process over the best in one")
	assert.InDelta(t, 0.5, v.byRival()[1], 1e-9)
	j := Judgement{Verdicts: []Verdict{v, {Family: usual("b"), played: [draws]played{p(12, 10), p(12, 10), p(12, 10)}}}}
	assert.InDelta(t, 0.85, j.medians((*Verdict).ratios)[0], 1e-9)
	assert.Equal(t, []string{"b"}, j.above((*Verdict).ratios, 0))
	assert.Contains(t, j.Line(), "all waits above 1.1 in: b\n")
	assert.Equal(t, []string{"a", "50.00", "100.00", "0.00", "0.00", "3.67", "5.00", "4.00", "8.00", "0.00", "0.00"}, j.costs().Rows[0])
}

// Three seeds choose a contender. After each, the better half remains: the worst on the first seed is not
// simulated on the others.
func TestTuning(t *testing.T) {
	b := rivalKind{grid: []Contender{{Limit: 1}, {Limit: 2}, {Limit: 3}, {Limit: 4}}}
	waits := map[float64][]float64{1: {1, 9, 9}, 2: {2, 2, 2}, 3: {3, 0, 0}, 4: {4, 0, 0}}
	runs := 0
	chosen, sum, err := b.tune(func(c Contender, seed int) (float64, error) {
		runs++
		return waits[c.Limit][seed], nil
	})
	require.NoError(t, err)
	assert.Equal(t, []any{2.0, 6.0, 4 + 2 + 1}, []any{chosen.Limit, sum, runs})
	assert.True(t, b.atEdge(b.grid[3]) && !b.atEdge(b.grid[0]) && !b.atEdge(b.grid[1]))
	for _, b := range rivalKinds() {
		assert.False(t, b.grid[0].Limit == 0 && b.atEdge(b.grid[0]), "without a limit there is no edge")
	}
}

// Earlier judgements are in the list, but not in the medians.
func TestMediansOfTheList(t *testing.T) {
	assert.Empty(t, Medians("a1: 20 families; medians over best: low wait 0.50; low wait above 1.1 in: none\n"))
	line := func(waits string) string {
		return "a1: 34 families; medians over the best of all rivals: all waits " + waits + ", duration 0.90, p99 1.00, until start 0.50, high p99 1.20; all waits above 1.1 in: speeds 2 to 1, flood\n"
	}
	assert.Equal(t, "medians of the 3 judgings of judgings.txt: all waits 0.80, duration 0.90, p99 1.00, high p99 1.20, until start 0.50\n",
		Medians("old\n"+line("0.70")+line("0.80")+line("0.99")))
}
