package selection_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/pkg/selection/policytest"
)

// busy gives an upstream as many jobs as it has cores, plus backlog.
func busy(v *selection.View, backlog float64) {
	v.Jobs = v.Cores + backlog
}

// TestExpectedWeighsWaitsAgainstFetches: one upstream has the project and a
// backlog, another is idle; 2.4 jobs complete per second, and 8 of 40
// cores count as taken.
func TestExpectedWeighsWaitsAgainstFetches(t *testing.T) {
	for _, c := range []struct {
		backlog, fetch float64
		stays          bool
	}{
		{backlog: 8, fetch: 400, stays: true},
		{backlog: 8, fetch: 0.5, stays: false},
		{backlog: 60, fetch: 5, stays: false},
		{backlog: 60, fetch: 6000, stays: true},
	} {
		views, rng := policytest.Idle(2), rand.New(rand.NewPCG(1, 1))
		views[0].Warm, views[0].Cache = 1, selection.Cached
		busy(&views[0], c.backlog)
		for project := uint64(1); project < 50; project++ {
			job := selection.Job{Project: project, Fetch: c.fetch, Service: 4}
			got := selection.DefaultExpected().Pick(job, views, rng)
			require.Equal(t, c.stays, got == 0, "backlog %v, fetch %v", c.backlog, c.fetch)
		}
		costs := costsOf(selection.DefaultExpected(), selection.Job{Project: 1, Fetch: c.fetch, Service: 4}, views)
		assert.InDelta(t, (8+c.backlog+1)/2.4, costs[0].Total, 1e-9)
		assert.InDelta(t, 0.4*math.Sqrt(c.fetch), costs[1].Fetch, 1e-9)
	}
}

// The cost of a prompt is the time to read the prompts queued before it plus the time to read what is not cached. Jobs whose
// response has started cost nothing, and an upstream other than the first-ranked one costs more only where nothing of the prompt is
// cached. Reports change none of this.
func TestExpectedPriceOfAPrompt(t *testing.T) {
	t.Run("with reports", func(t *testing.T) { priceOfAPrompt(t, policytest.Idle(3)) })
	unreported := policytest.Idle(3)
	for i := range unreported {
		unreported[i].Fresh = false
	}
	t.Run("without reports", func(t *testing.T) { priceOfAPrompt(t, unreported) })
}

func priceOfAPrompt(t *testing.T, views []selection.View) {
	costs := make([]selection.Cost, 3)
	job := selection.Job{Project: 7, Prompt: true, QueuedBehind: 1, FirstPlaceHitRate: 0.1, Fetch: 5, Service: 1}
	views[0].PrefillWait, views[0].Jobs = 3, 1000
	views[1].Warm, views[1].Cache = 0.5, selection.AssumedCached
	at := selection.DefaultExpected().PickWithCosts(job, views, costs, rand.New(rand.NewPCG(1, 1)))
	assert.Equal(t, 1, at)
	assert.Equal(t, selection.Cost{Total: 5, Fetch: 5}, costs[1])
	for _, i := range []int{0, 2} {
		assert.Equal(t, views[i].PrefillWait, costs[i].Wait)
		assert.Equal(t, 10.0, costs[i].Fetch)
		assert.Contains(t, []float64{0, 5}, costs[i].Placement)
	}
	views[1].PrefillWait = 20
	homes := map[int]bool{}
	for project := range uint64(100) {
		job.Project = project + 1
		at = selection.DefaultExpected().PickWithCosts(job, views, costs, rand.New(rand.NewPCG(project, 1)))
		home := policytest.ByRendezvous(job.Project, views)[0]
		want := 2
		if home == 0 { // 13 there, 15 at the last
			want = 0
		}
		assert.Equal(t, want, at)
		homes[home] = true
	}
	assert.Len(t, homes, 3)
}
