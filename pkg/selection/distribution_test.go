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

// TestBoundedHashSpillsInOrder sends one busy project's jobs, and none of them
// ends. No upstream ever exceeds the bound, and they fill in rendezvous order.
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

// TestBoundedHashFollowsWeights: the bound grows with the weight.
func TestBoundedHashFollowsWeights(t *testing.T) {
	views, rng := policytest.Idle(4), rand.New(rand.NewPCG(1, 1))
	for i := range views {
		views[i].Weight = float64(i)
	}
	for project := uint64(1); project <= 600; project++ {
		views[selection.BoundedHash{}.Pick(selection.Job{Project: project}, views, rng)].InFlight++
	}
	assert.Zero(t, views[0].InFlight)
	for i := range views {
		assert.InDelta(t, 100*i, views[i].InFlight, 40)
	}
}

// TestP2CPrefersTheLessLoaded: with n upstreams of distinct costs the k-th
// best wins 2(n-k)/(n(n-1)) of the draws; the worst none.
func TestP2CPrefersTheLessLoaded(t *testing.T) {
	views, rng := policytest.Idle(5), rand.New(rand.NewPCG(1, 1))
	for i := range views {
		views[i].InFlight = float64(4 - i)
	}
	counts := make([]int, 5)
	for range 10000 {
		counts[selection.P2CEWMA{}.Pick(selection.Job{}, views, rng)]++
	}
	require.NoError(t, policytest.Spread(counts, []float64{0, 0.1, 0.2, 0.3, 0.4}))
}

// TestP2CUnknownLatencyDrawsNoTraffic: an upstream whose latency is not known
// gets its share by in-flight, no more.
func TestP2CUnknownLatencyDrawsNoTraffic(t *testing.T) {
	views, rng := policytest.Idle(4), rand.New(rand.NewPCG(1, 1))
	views[0].Latency = 0
	for range 400 {
		views[selection.P2CEWMA{}.Pick(selection.Job{}, views, rng)].InFlight++
	}
	assert.InDelta(t, 100, views[0].InFlight, 10)
}
