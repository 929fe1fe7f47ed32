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

// without returns the policy with some constants changed.
func without(change func(e *selection.Expected)) *selection.Expected {
	e := selection.DefaultExpected()
	change(e)
	return e
}

func noRank(e *selection.Expected)     { e.Rank = 0 }
func noCrowding(e *selection.Expected) { e.Crowding = 0 }
func noTail(e *selection.Expected)     { e.Tail = 0 }

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
		costs := costsOf(without(noRank), selection.Job{Project: 1, Fetch: c.fetch, Service: 4}, views)
		assert.InDelta(t, (8+c.backlog+1)/2.4, costs[0].Total, 1e-9)
		assert.InDelta(t, 0.4*math.Sqrt(c.fetch), costs[1].Total, 1e-9)
	}
}

// TestExpectedAgreesOnAColdProject: with any random source, every sidecar sends a project that
// is cached nowhere to the same upstream: the first in rendezvous order that is not much busier
// than the others.
func TestExpectedAgreesOnAColdProject(t *testing.T) {
	views := policytest.Idle(14)
	for project := uint64(1); project < 300; project++ {
		job := selection.Job{Project: project, Fetch: 60, Service: 4}
		order := policytest.ByRendezvous(project, views)
		for seed := range uint64(3) {
			got := selection.DefaultExpected().Pick(job, views, rand.New(rand.NewPCG(seed, 0)))
			require.Equal(t, order[0], got)
		}
		crowded := slices.Clone(views)
		busy(&crowded[order[0]], 1) // 4.2 s, and a rank costs 4.6 s
		require.Equal(t, order[0], selection.DefaultExpected().Pick(job, crowded, nil))
		busy(&crowded[order[0]], 5)
		require.Equal(t, order[1], selection.DefaultExpected().Pick(job, crowded, nil))
	}
}

// TestExpectedKeepsToItsOrderWhenCrowded: a project goes from its first upstream to others with
// free cores, but not to nearly full ones.
func TestExpectedKeepsToItsOrderWhenCrowded(t *testing.T) {
	for _, c := range []struct {
		jobs     float64 // at every other upstream of 40 cores
		crowding bool
		rank     int
	}{{0, true, 1}, {16, true, 1}, {36, true, 0}, {36, false, 1}} {
		views := policytest.Idle(14)
		order := policytest.ByRendezvous(7, views)
		for i := range views {
			views[i].Jobs = c.jobs
		}
		busy(&views[order[0]], 20) // 12 s
		policy := selection.DefaultExpected()
		if !c.crowding {
			policy = without(noCrowding)
		}
		assert.Equal(t, order[c.rank], policy.Pick(selection.Job{Project: 7, Fetch: 30, Service: 4}, views, nil), "%+v", c)
	}
}

// TestExpectedStops: of two upstreams that have the project's data, the one that stops soon
// gets no job, unless the other costs more by more than a stop would.
func TestExpectedStops(t *testing.T) {
	views, rng := policytest.Idle(3), rand.New(rand.NewPCG(1, 1))
	views[0].Warm, views[1].Warm = 1, 1
	views[0].Cache, views[1].Cache = selection.Cached, selection.Cached
	views[0].Left = 120
	job, took := selection.Job{Project: 1, Fetch: 30, Service: 4}, make([]int, 3)
	for range 1000 {
		require.Equal(t, 1, selection.DefaultExpected().Pick(job, views, rng))
		took[without(noTail).Pick(job, views, rng)]++
	}
	require.NoError(t, policytest.Spread(took, policytest.Evenly(3, []int{0, 1})))
	busy(&views[1], 20)
	require.Equal(t, 0, selection.DefaultExpected().Pick(job, views, rng))
}

// TestExpectedPriceOfAStop: an upstream costs more near its end, at most by the work and the
// fetch that a stop would lose.
func TestExpectedPriceOfAStop(t *testing.T) {
	job := selection.Job{Project: 1, Fetch: 5, Service: 4}
	price := func(left float64) float64 {
		views := policytest.Idle(1)
		views[0].Left, views[0].Cache, views[0].Warm = left, selection.Cached, 1
		return costsOf(selection.DefaultExpected(), job, views)[0].Stop
	}
	assert.Zero(t, price(0), "nobody says that it stops")
	assert.Zero(t, price(80000))
	assert.InDelta(t, 1.6+5, price(0.001), 0.01, "the shortest job's work and the fetch")
	assert.InDelta(t, 1.6/60*65, price(60), 0.02)
	assert.InDelta(t, 1.6/3600*3605-1.6/7200*3605, price(3600), 1e-9)
	for _, left := range []float64{2, 10, 100, 1000, 7000} {
		assert.Greater(t, price(left), price(left*1.1))
	}
}
