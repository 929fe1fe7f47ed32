package selection_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/pkg/selection/policytest"
)

// The cost of a prompt is the time to read the prompts queued before it plus the time to read what is not cached. Jobs that are
// being answered cost nothing, and an upstream other than the first-ranked one costs more only where nothing of the prompt is
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
		home := 0
		for i := range views {
			if selection.Rendezvous(job.Project, views[i].ID, 1) > selection.Rendezvous(job.Project, views[home].ID, 1) {
				home = i
			}
		}
		want := 2
		if home == 0 { // 13 there, 15 at the last
			want = 0
		}
		assert.Equal(t, want, at)
		homes[home] = true
	}
	assert.Len(t, homes, 3)
}
