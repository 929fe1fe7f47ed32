package compare

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/lab/stats"
	"example.org/pilotfish/pkg/selection"
)

// sample is three runs with two trials each, over two upstreams. Their fetches and low
// waits are in the proportion 1 : 2 : 4.
func sample() *Set {
	s := &Set{Scenario: "day", Jobs: 7, Length: 60}
	s.Reference.Rows = []stats.Row{{Run: "published", Priority: "low", Quantity: stats.Wait, Summary: stats.Summary{Mean: 4}}}
	s.Reference.Variances = []stats.VarianceRow{{Run: "published", All: 2, Upstreams: []float64{3, 4}}}
	for i, name := range []string{"a", "b", "c"} {
		x := float64(int(1) << i)
		run := Run{Name: name, Reference: "none"}
		for seed := range uint64(2) {
			jobs := stats.NewRun(2)
			jobs.Add(stats.Sample{Priority: selection.Low, Wait: x - 0.5, Upstream: 0})
			jobs.Add(stats.Sample{Priority: selection.Low, Wait: x + 0.5, Upstream: 1})
			run.Trials = append(run.Trials, Trial{Seed: seed + 3, Stats: jobs, Counts: Counts{Fetches: x * float64(seed+1)}})
		}
		s.Runs = append(s.Runs, run)
	}
	s.Runs[1].Reference = "published"
	return s
}

func text(t *testing.T, s *Set) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, s.WriteText(&out))
	return out.String()
}

// The reference's rows stand below ours, with the ratio
// to them. Ratios are of paired seeds.
func TestText(t *testing.T) {
	out := text(t, sample())
	assert.Contains(t, out, "day\n\n7 jobs over 1m, seeds 3 to 4\n")
	assert.Regexp(t, `\nb +- .* 2\.00 .*\nb, reference +- .* 4\.00 .*\nb / reference +- .* 0\.50 `, out)
	assert.NotContains(t, out, "a, reference")
	assert.Regexp(t, `\nb +0\.25 +0\.00 +0\.00\nb, reference +2\.00 +3\.00 +4\.00\n`, out)
	assert.Regexp(t, `\nratio to a: wait_s, low\n.*\nb +2\.000 \[2\.000, 2\.000\] +3\.000 .*\nc +4\.000 `, out)
	assert.Regexp(t, `\nratio to a: what else was counted\n.*\nb +2\.000 \[2\.000, 2\.000\] +- `, out)
	assert.NotContains(t, out, "ratio to a: wait_s, high", "a table without a ratio is left out")

	s := sample()
	s.Runs[0].Trials[1].Counts.Fetches = 0
	assert.NotContains(t, text(t, s), "what else was counted", "nothing is a multiple of 0")
}

func TestMeanOfCounts(t *testing.T) {
	m := mean([]Trial{{Counts: Counts{Jobs: 10, Lost: 1}}, {Counts: Counts{Jobs: 20, Load: 0.5}}})
	assert.Equal(t, Counts{Jobs: 15, Lost: 0.5, Load: 0.25}, m)
}
