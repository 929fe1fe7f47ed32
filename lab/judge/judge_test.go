package judge

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHashIsOfTheSources(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		hash, err := Hash(root)
		if len(hash) == 0 {
			require.ErrorContains(t, err, "there is no source")
		}
		return hash
	}
	assert.Empty(t, write("pkg/selection/a.go", "a"))
	assert.Empty(t, write("internal/pool/a.go", "a"))
	assert.Empty(t, write("internal/breaker/a.go", "a"))
	first := write("internal/ruleserver/order/a.go", "a")
	require.Len(t, first, 16)
	assert.Equal(t, first, write("internal/pool/a_test.go", "a"), "tests are not judged")
	assert.Equal(t, first, write("internal/other/a.go", "a"))
	assert.NotEqual(t, first, write("internal/pool/a.go", "b"))
	assert.Equal(t, first, write("internal/pool/a.go", "a"))
	assert.NotEqual(t, first, write("internal/pool/b.go", ""))
}

// Every draw is within its range, and the jobs are as heavy as the setting says.
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

// The table is the same however many settings are played at once, and another hash draws
// other settings.
func TestJudgementsAreOfTheirHash(t *testing.T) {
	tiny := usual("tiny", func(f *Family) {
		f.Jobs, f.Upstreams, f.Cores, f.Sidecars = Range{500, 900}, Range{2, 3}, Range{2, 4}, Range{2, 3}
	})
	other := tiny
	other.Name, other.Hints = "other", false
	table := func(hash string, parallel int) string {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(parallel))
		count := 0
		j, err := Judge(t.Context(), hash, []Family{tiny, other}, func(ended, all int) {
			count++
			assert.Equal(t, []int{count, 2 * draws}, []int{ended, all})
		})
		require.NoError(t, err)
		var out strings.Builder
		require.NoError(t, j.WriteText(&out))
		assert.Contains(t, out.String(), "sources: "+hash+" (")
		assert.Contains(t, j.Line(), hash+": 2 families; medians over best: low wait ")
		return out.String()
	}
	first := table("0123", 1)
	assert.Equal(t, first, table("0123", 3))
	assert.NotEqual(t, first, table("0124", 2))
	assert.Regexp(t, `\ntiny +schedules +yes `, first)
	assert.Regexp(t, `\nother +schedules +no `, first)
}

func TestRatios(t *testing.T) {
	p := func(ours, best float64) played {
		bases := make([]Outcome, len(bases()))
		tuned := make([]Contender, len(bases))
		for i := range bases {
			bases[i] = Outcome{Low: 8, LowP99: 8, High: 8, HighP99: 8, Time: 8}
		}
		bases[1][Low], bases[1][Fetches] = best, 100
		return played{ours: Outcome{Low: ours, LowP99: 4, High: 8, HighP99: 8, Time: 8, Fetches: 50}, bases: bases, tuned: tuned, chosen: 1}
	}
	v := Verdict{Family: usual("a"), played: [draws]played{p(1, 4), p(9, 9), p(1, 2)}}
	assert.InDelta(t, 0.5, v.ratios()[0], 1e-9, "a quarter, one and a half")
	assert.InDelta(t, 0.5, v.ratios()[5], 1e-9)
	assert.InDelta(t, math.Cbrt(9.0/8/8/8), v.ratios()[1], 1e-9)
	j := Judgement{Verdicts: []Verdict{v, {Family: usual("b"), played: [draws]played{p(12, 10), p(12, 10), p(12, 10)}}}}
	assert.InDelta(t, 0.85, j.medians((*Verdict).ratios)[0], 1e-9)
	assert.Equal(t, []string{"b"}, j.above(0))
	assert.Contains(t, j.Line(), "low wait above 1.1 in: b\n")
	assert.Equal(t, []string{"a", "50.00", "100.00", "0.00", "100.00", "0.00", "0.00", "0.00", "0.00", "3.67", "5.00"}, j.costs().Rows[0])
}
