package scenario

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/lab/sim"
	"example.org/pilotfish/lab/stats"
	"example.org/pilotfish/lab/workload"
	"example.org/pilotfish/pkg/selection"
)

// sample is three runs with two trials each. Their fetches and low waits are in the proportion 1 : 2 : 4.
func sample() *Results {
	s := &Scenario{name: "day", Seed: 3, Seeds: 2, Workload: workload.Config{Jobs: 7, Duration: 60}}
	s.published.results = map[string][]float64{"b, low, wait_s": {4, 0, 0, 0, 0, 0}}
	s.published.variances = map[string][]float64{"b": {2, 1, 4}}
	r := &Results{scenario: s}
	for i, name := range []string{"a", "b", "c"} {
		x := float64(int(1) << i)
		s.Runs = append(s.Runs, Run{Name: name, Fleet: sim.Fleet{Upstreams: 2}})
		var trials []trial
		for seed := range 2 {
			jobs := stats.NewRun()
			jobs.Add(selection.Low, x-0.5, 0)
			jobs.Add(selection.Low, x+0.5, 0)
			waits := make([]stats.Moments, 3)
			for _, v := range []float64{1, 2, 3, 4} {
				waits[0].Add(x * v)
				waits[1+int(v)/3].Add(x * v)
			}
			trials = append(trials, trial{variance: waits, stats: jobs, counts: counts{"fetches": x * float64(seed+1), "lost": 1 - float64(seed), "load": float64(seed)}})
		}
		r.trials = append(r.trials, trials)
	}
	return r
}

func text(t *testing.T, r *Results) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, r.WriteText(&out))
	return out.String()
}

// The reference's rows stand below ours, with the ratio to them. Ratios are of paired seeds, counts are means.
func TestText(t *testing.T) {
	out := text(t, sample())
	assert.Contains(t, out, "day\n\n7 jobs over 1m, seeds 3 to 4\n")
	assert.Regexp(t, `\nb +- .* 2\.00 .*\nb, reference +- .* 4\.00 .*\nb / reference +- .* 0\.50 `, out)
	assert.NotContains(t, out, "a, reference")
	assert.Regexp(t, `\nvariance of wait_s, low +all +server 1 +server 2\na +1\.25 +0\.25 +0\.25\n`, out)
	assert.Regexp(t, `\nb, reference +2\.00 +1\.00 +4\.00\nb / reference +2\.50 `, out)
	assert.Regexp(t, `\nb +0 +0\.0 +0 +0 +0 +0 +1 +0 +0 +0\.500 +0\.00\n`, out)
	assert.Regexp(t, `\nratio to a: wait_s, low\n.*\nb +2\.000 \[2\.000, 2\.000\] +3\.000 .*\nc +4\.000 `, out)
	assert.Regexp(t, `\nratio to a: other counts\n.*\nb +2\.000 \[2\.000, 2\.000\] +- `, out)
	assert.NotContains(t, out, "ratio to a: wait_s, high", "a table without a ratio is left out")

	r := sample()
	r.trials[0][1].counts["fetches"] = 0
	assert.NotContains(t, text(t, r), "other counts", "nothing is a multiple of 0")
	for v, want := range map[float64]string{0: "0.00", 0.004: "4.0e-03", 0.006: "0.01", 12.345: "12.35", math.Inf(1): "-"} {
		assert.Equal(t, want, number(v))
	}
	assert.Equal(t, "-", number(math.NaN()))
}
