package scenario

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"example.org/pilotfish/pkg/selection"
)

// With the rule's constant, the next copy of a project with three open jobs costs 3 / (3 + 3) of a rank, and of one without
// an open job a whole rank.
func TestMultipliedCopies(t *testing.T) {
	const half = 0.2 * 1.5 / 2 // the price of half a rank, in seconds
	for by, want := range map[float64]float64{0: 0, 0.5: 2. / 3, 1: 1, 2: 4. / 3} {
		job := selection.Job{Project: 7, Service: 1, Fetch: 1, Open: 3}
		views := []selection.View{{ID: 1, Weight: 1, Cores: 4, Fresh: true, Cache: selection.Cached, Warm: 1}, {ID: 2, Weight: 1, Cores: 4, Fresh: true}}
		costs := make([]selection.Cost, len(views))
		multiply(map[string]float64{"copies": by}).PickWithCosts(job, views, costs, rand.New(rand.NewPCG(1, 0)))
		assert.InDelta(t, want*half, costs[1].Placement, 1e-9, "times %v", by)
		job.Open = 0
		multiply(map[string]float64{"copies": by}).PickWithCosts(job, views, costs, rand.New(rand.NewPCG(1, 0)))
		assert.InDelta(t, 2*half*min(1, 2*by), costs[1].Placement, 1e-9, "times %v, without an open job", by)
	}
}
