package scenario

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/lab/sim"
	"example.org/pilotfish/lab/workload"
)

// The slope is up to the first loss; two losses in a row are one batch.
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
	assert.Nil(t, newTrend(&w))
	newTrend(&w).add(new(sim.Result))
}

// With Turner's numbers of workers the times to the first byte rise as they did for him, within 0.5 s for each job: where a worker
// is idle in the mean, they do not rise.
func TestTurnersSlopes(t *testing.T) {
	s, err := Load("../../testdata/scenarios/turner.yaml")
	require.NoError(t, err)
	require.Len(t, s.published.slopes, 7)
	results, err := s.Play(t.Context(), 1, func(string) {})
	require.NoError(t, err)
	for i, run := range s.Runs[:7] {
		f := results.trials[i][0].trend.find()
		assert.InDelta(t, s.published.slopes[run.Name][0], f.slope, 0.5, run.Name)
		assert.Equal(t, run.Fleet.Cores < 32, f.lost > 0, run.Name)
	}
	assert.Contains(t, text(t, results), "slope  reference")
}
