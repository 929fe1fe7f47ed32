package scenario

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/lab/sim"
	"example.org/pilotfish/lab/stats"
	"example.org/pilotfish/lab/workload"
	"example.org/pilotfish/pkg/selection"
)

// sample returns three runs with two trials each. Their fetches and waits of low jobs are in the
// proportion 1 : 2 : 4.
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

// WriteText prints, for each run: the results, the variances of waits and the counts, which are means over the seeds. Where a
// reference has published numbers, they follow below the run's, with the ratio. Then, each run is compared with the first,
// seed by seed; a table without any ratio is omitted.
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
	assert.NotContains(t, out, "ratio to a: wait_s, high", "no high-priority job, so no ratio")

	r := sample()
	r.trials[0][1].counts["fetches"] = 0
	assert.NotContains(t, text(t, r), "other counts", "the first run has no fetches in one seed, so there is no ratio")
	for v, want := range map[float64]string{0: "0.00", 0.004: "4.0e-03", 0.006: "0.01", 12.345: "12.35", math.Inf(1): "-"} {
		assert.Equal(t, want, number(v), "%v", v)
	}
	assert.Equal(t, "-", number(math.NaN()))
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// small returns the small scenario: 5 runs with 2 seeds each.
func small(t *testing.T) *Scenario {
	t.Helper()
	s, err := Load("../../testdata/scenarios/small.yaml")
	require.NoError(t, err)
	s.Workload.Jobs = 800
	for i := range s.Runs {
		s.Runs[i].Workload.Jobs = 800
	}
	return s
}

// An interruption or an error ends a scenario.
func TestWhatEndsAScenario(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := 0
	_, err := small(t).Play(ctx, 1, func(string) {
		if ended++; ended == 3 {
			cancel(cli.ErrInterrupted)
		}
	})
	require.ErrorIs(t, err, cli.ErrInterrupted)
	assert.Equal(t, 3, ended)

	s := small(t)
	s.Runs[1].Policy = "none"
	_, err = s.Play(t.Context(), 2, func(string) {})
	require.ErrorContains(t, err, `run "dynamic", seed 1: unknown selection policy`)
}

// Every run is simulated with every seed, and each job is counted once.
func TestPlay(t *testing.T) {
	var ended []string
	results, err := small(t).Play(t.Context(), 2, func(what string) { ended = append(ended, what) })
	require.NoError(t, err)
	assert.Len(t, ended, 10)
	require.Len(t, results.trials, 5)
	for _, trials := range results.trials {
		require.Len(t, trials, 2)
		assert.NotEqual(t, trials[0].counts, trials[1].counts, "seeds differ")
		for _, trial := range trials {
			assert.Equal(t, 800.0, trial.counts["jobs"])
			assert.InDelta(t, 0.12, trial.counts["load"], 0.05)
		}
	}
}

// The slope is measured up to the first loss. Two losses in a row count as one batch. The list has the times to first byte in
// seconds; 0 is a lost job.
func TestTrend(t *testing.T) {
	w := workload.Default()
	w.Pattern, w.Jobs = "bursts", 8
	trend := newTrend(&w)
	for i, first := range []int{2, 4, 6, 0, 0, 9, 0, 3} {
		r := sim.Result{Number: int64(i + 1), FirstByte: time.Duration(first) * time.Second, Completeness: intake.Complete}
		if first == 0 {
			r.Outcome, r.Completeness = sim.Expired, intake.Partial
		}
		trend.add(&r)
	}
	assert.Equal(t, found{slope: 2, first: 2, last: 6, before: 6, after: 9, lost: 3, batches: 2, partial: 3}, trend.find())
	w.Pattern = "steady"
	assert.Nil(t, newTrend(&w), "only bursts have a trend")
	newTrend(&w).add(new(sim.Result)) // does not panic
}

// With 8 to 64 workers, the time to first byte rises per job as in Turner's thesis: within 0.5 s, and within 0.05 s if no jobs
// are lost. Jobs are lost with fewer than 32 workers only.
func TestTurnersSlopes(t *testing.T) {
	s, err := Load("../../testdata/scenarios/turner.yaml")
	require.NoError(t, err)
	require.Len(t, s.published.slopes, 7)
	results, err := s.Play(t.Context(), 1, func(string) {})
	require.NoError(t, err)
	for i, run := range s.Runs[:7] {
		f := results.trials[i][0].trend.find()
		tolerance := 0.5
		if run.Fleet.Cores >= 32 {
			tolerance = 0.05
		}
		assert.InDelta(t, s.published.slopes[run.Name][0], f.slope, tolerance, "slope with %s", run.Name)
		assert.Equal(t, run.Fleet.Cores < 32, f.lost > 0, "%d jobs are lost with %s", f.lost, run.Name)
	}
	assert.Contains(t, text(t, results), "slope  reference")
}
