package selection_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/pkg/selection/policytest"
)

// TestBoundedHashSpillsInOrder sends the jobs of one busy project, which never end. No upstream
// exceeds the bound, and upstreams fill in rendezvous order.
func TestBoundedHashSpillsInOrder(t *testing.T) {
	const project = 99
	for factor, last := range map[float64]int{0: 5, 0.5: 7, 1: 7, 1.25: 6, 2: 4} {
		views, rng := policytest.Idle(7), rand.New(rand.NewPCG(1, 1))
		order := policytest.ByRendezvous(project, views)
		standing := factor
		if factor == 0 {
			standing = 1.5
		}
		for sent := 1; sent <= 200; sent++ {
			at := selection.BoundedHash{Factor: factor}.Pick(selection.Job{Project: project}, views, rng)
			bound := math.Ceil(math.Max(1, standing) * float64(sent) / 7)
			for _, i := range order[:slices.Index(order, at)] {
				require.GreaterOrEqual(t, views[i].InFlight, bound, "factor %v: job %d passed %d by", factor, sent, i)
			}
			views[at].InFlight++
			require.LessOrEqual(t, views[at].InFlight, bound, "factor %v: job %d", factor, sent)
		}
		for place, i := range order {
			assert.Equal(t, place < last, views[i].InFlight > 0, "factor %v: place %d", factor, place)
		}
	}
}
