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

// newExpected is the policy without some parts.
func newExpected(t *testing.T, off selection.Part) *selection.Expected {
	t.Helper()
	policy, err := selection.NewExpected(selection.ExpectedConfig{Off: off})
	require.NoError(t, err)
	return policy
}

// busy loads an upstream with as many jobs more than its cores as backlog says.
func busy(v *selection.View, backlog float64) {
	v.Jobs, v.Stalled = v.Cores+backlog, max(0, backlog)
}

// TestExpectedWeighsWaitsAgainstFetches: one upstream has the project and a
// backlog, another is idle; 2.4 jobs complete per second, and 8 of 40
// cores count as taken.
func TestExpectedWeighsWaitsAgainstFetches(t *testing.T) {
	for _, c := range []struct {
		backlog, fetch float64
		stays          bool
	}{
		{backlog: 8, fetch: 200, stays: true},
		{backlog: 8, fetch: 0.5, stays: false},
		{backlog: 60, fetch: 5, stays: false},
		{backlog: 60, fetch: 2000, stays: true},
	} {
		views, rng := policytest.Idle(2), rand.New(rand.NewPCG(1, 1))
		views[0].Warm, views[0].Cache = 1, selection.Cached
		busy(&views[0], c.backlog)
		for project := uint64(1); project < 50; project++ {
			job := selection.Job{Project: project, Fetch: c.fetch}
			got := newExpected(t, 0).Pick(job, views, rng)
			require.Equal(t, c.stays, got == 0, "backlog %v, fetch %v", c.backlog, c.fetch)
		}
		costs := make([]selection.Cost, 2)
		newExpected(t, selection.PartPlacement).Costs(selection.Job{Project: 1, Fetch: c.fetch}, views, costs)
		assert.InDelta(t, 1.5*(8+c.backlog+1)/2.4, costs[0].Total, 1e-9)
		assert.InDelta(t, 0.5*math.Pow(c.fetch, 0.6), costs[1].Total, 1e-9)
	}
}

// TestExpectedPaysMoreForWaits: 9.6 s of waiting cost more than a fetch whose
// price is 12 s.
func TestExpectedPaysMoreForWaits(t *testing.T) {
	views := policytest.Idle(2)
	views[0].Warm = 1
	busy(&views[0], 14)
	job := selection.Job{Project: 1, Fetch: 200}
	assert.Equal(t, 1, newExpected(t, selection.PartPlacement).Pick(job, views, nil))
	assert.Equal(t, 0, newExpected(t, selection.PartPlacement|selection.PartWaitPrice).Pick(job, views, nil))
}

// TestExpectedOwnLength: with LengthPower, waits are dearer for jobs that are short, and
// cheaper for long ones, but never cheaper than the wait itself.
func TestExpectedOwnLength(t *testing.T) {
	views, costs := policytest.Idle(1), make([]selection.Cost, 1)
	busy(&views[0], 14)
	wait := (8 + 14 + 1) / 2.4
	for _, c := range []struct{ power, length, times float64 }{
		{0, 0.01, 1.5}, {0.5, 0, 1.5}, {0.5, 1, 1.5}, {0.5, 0.25, 3}, {0.5, 1e-6, 6}, {0.5, 2.25, 1}, {0.5, 1e9, 1},
	} {
		e, err := selection.NewExpected(selection.ExpectedConfig{LengthPower: c.power})
		require.NoError(t, err)
		e.Costs(selection.Job{Length: c.length}, views, costs)
		assert.InDelta(t, c.times*wait, costs[0].Wait, 1e-9, "%+v", c)
	}
}

// TestExpectedSharesFetches: the open jobs of a project take over their part of
// a fetch, so that a project in demand spreads.
func TestExpectedSharesFetches(t *testing.T) {
	views := policytest.Idle(2)
	views[0].Warm = 1
	busy(&views[0], 14) // 14.4 s
	job := selection.Job{Project: 1, Fetch: 300}
	without := selection.PartPlacement | selection.PartShare
	assert.Equal(t, 0, newExpected(t, selection.PartPlacement).Pick(job, views, nil))
	job.Open = 4
	assert.Equal(t, 1, newExpected(t, selection.PartPlacement).Pick(job, views, nil))
	assert.Equal(t, 0, newExpected(t, without).Pick(job, views, nil))
}

// TestExpectedPicksTheIdleOfTwo without a project: always.
func TestExpectedPicksTheIdleOfTwo(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, jobs := range []float64{1, 20, 40, 90} {
		for idleAt := range 2 {
			views := policytest.Idle(2)
			views[1-idleAt].Jobs = jobs
			for range 200 {
				require.Equal(t, idleAt, newExpected(t, 0).Pick(selection.Job{}, views, rng))
			}
		}
	}
}

// TestExpectedShunsTheStuck: an upstream stuck on long jobs completes few and
// has a low rate; as many jobs ahead mean a longer wait there, and fewer may too.
func TestExpectedShunsTheStuck(t *testing.T) {
	views, rng := policytest.Idle(2), rand.New(rand.NewPCG(1, 1))
	busy(&views[0], 5)
	busy(&views[1], 9)
	views[0].Rate = 0.05
	for range 200 {
		require.Equal(t, 1, newExpected(t, 0).Pick(selection.Job{}, views, rng))
	}
}

// TestExpectedAgreesOnAColdProject: whatever the random source, every sidecar
// sends a project that is cached nowhere to the same upstream, the first in
// rendezvous order that is not much busier.
func TestExpectedAgreesOnAColdProject(t *testing.T) {
	views := policytest.Idle(14)
	for project := uint64(1); project < 300; project++ {
		job := selection.Job{Project: project, Fetch: 40}
		order := policytest.ByRendezvous(project, views)
		for seed := range uint64(3) {
			got := newExpected(t, 0).Pick(job, views, rand.New(rand.NewPCG(seed, 0)))
			require.Equal(t, order[0], got)
		}
		crowded := slices.Clone(views)
		busy(&crowded[order[0]], 1) // 8.8 s against the 9.9 s of a rank
		require.Equal(t, order[0], newExpected(t, 0).Pick(job, crowded, nil))
		busy(&crowded[order[0]], 5)
		require.Equal(t, order[1], newExpected(t, 0).Pick(job, crowded, nil))
	}
}

// TestExpectedKeepsToItsOrderWhenCrowded: a project leaves its home for
// upstreams that have room, and not for those that are nearly full.
func TestExpectedKeepsToItsOrderWhenCrowded(t *testing.T) {
	for _, c := range []struct {
		jobs float64 // at every other upstream of 40 cores
		off  selection.Part
		rank int
	}{{0, 0, 1}, {16, 0, 1}, {36, 0, 0}, {36, selection.PartCrowding, 1}} {
		views := policytest.Idle(14)
		order := policytest.ByRendezvous(7, views)
		for i := range views {
			views[i].Jobs = c.jobs
		}
		busy(&views[order[0]], 20) // 21 s
		policy := newExpected(t, c.off)
		assert.Equal(t, order[c.rank], policy.Pick(selection.Job{Project: 7, Fetch: 20}, views, nil), "%+v", c)
	}
}

// TestExpectedSpreadsNearEqual: cached upstreams that cost as much as each
// other are taken alike; an own job there decides against one.
func TestExpectedSpreadsNearEqual(t *testing.T) {
	views, rng := policytest.Idle(6), rand.New(rand.NewPCG(1, 1))
	for i := range 4 {
		views[i].Warm = 1
	}
	for own := range 4 {
		counts := make([]int, 6)
		for range 3000 {
			counts[newExpected(t, 0).Pick(selection.Job{Project: 7, Fetch: 5}, views, rng)]++
		}
		require.NoError(t, policytest.Spread(counts, policytest.Evenly(6, []int{0, 1, 2, 3}[own:])))
		views[own].InFlight = 1
	}
}

// TestExpectedBandWidensWithAge: five jobs more are a difference between fresh
// reports, none between old ones.
func TestExpectedBandWidensWithAge(t *testing.T) {
	for _, c := range []struct {
		age  float64
		want []float64
	}{
		{age: 0.1, want: []float64{1, 0, 0}},
		{age: 600, want: []float64{2.0 / 3, 1.0 / 3, 0}}, // the cheaper of two
	} {
		views, rng := policytest.Idle(3), rand.New(rand.NewPCG(1, 1))
		for i := range views {
			views[i].Warm, views[i].Age = 1, c.age
			busy(&views[i], 20+5*float64(i))
		}
		counts := make([]int, 3)
		for range 3000 {
			counts[newExpected(t, 0).Pick(selection.Job{Project: 4, Fetch: 60}, views, rng)]++
		}
		require.NoError(t, policytest.Spread(counts, c.want))
	}
}

// TestExpectedStops: of two upstreams that have the project the one that stops
// soon gets no job, unless the other is the dearer by more than a stop would lose.
func TestExpectedStops(t *testing.T) {
	views, rng := policytest.Idle(3), rand.New(rand.NewPCG(1, 1))
	views[0].Warm, views[1].Warm = 1, 1
	views[0].Left = 60
	job, took := selection.Job{Project: 1, Fetch: 30}, make([]int, 3)
	for range 1000 {
		require.Equal(t, 1, newExpected(t, 0).Pick(job, views, rng))
		took[newExpected(t, selection.PartStop).Pick(job, views, rng)]++
	}
	require.NoError(t, policytest.Spread(took, policytest.Evenly(3, []int{0, 1})))
	busy(&views[1], 20)
	require.Equal(t, 0, newExpected(t, 0).Pick(job, views, rng))
}

// TestExpectedPriceOfAStop: near its end an upstream is dearer, at most by
// the work and the fetch that a stop would lose.
func TestExpectedPriceOfAStop(t *testing.T) {
	job := selection.Job{Project: 1, Fetch: 5}
	price := func(left float64) float64 {
		views, costs := policytest.Idle(1), make([]selection.Cost, 1)
		views[0].Left, views[0].Warm = left, 1
		newExpected(t, 0).Costs(job, views, costs)
		return costs[0].Stop
	}
	assert.Zero(t, price(math.Inf(1)))
	assert.Zero(t, price(80000))
	assert.InDelta(t, 1.6+5, price(0), 0.01, "the shortest job's work and the fetch")
	assert.InDelta(t, 1.6/60*65, price(60), 0.02)
	assert.InDelta(t, 1.6/3600*3605-1.6/7200*3605, price(3600), 1e-9)
	for _, left := range []float64{2, 10, 100, 1000, 7000} {
		assert.Greater(t, price(left), price(left*1.1))
	}
}

// TestExpectedSlowStart: an upstream that came up takes a growing share of the
// cold projects that are its own by rendezvous, from a tenth to all of them.
func TestExpectedSlowStart(t *testing.T) {
	share := func(uptime, fetch float64) float64 {
		views, own, taken := policytest.Idle(4), 0.0, 0.0
		views[2].Uptime = uptime
		for project := uint64(1); project <= 4000; project++ {
			if policytest.ByRendezvous(project, views)[0] != 2 {
				continue
			}
			own++
			if newExpected(t, 0).Pick(selection.Job{Project: project, Fetch: fetch}, views, nil) == 2 {
				taken++
			}
		}
		return taken / own
	}
	for _, c := range [][2]float64{{0, 0.1}, {3, 0.1}, {15, 0.25}, {30, 0.5}, {45, 0.75}, {60, 1}} {
		for _, fetch := range []float64{0.5, 5, 500} {
			assert.InDelta(t, c[1], share(c[0], fetch), 0.05, "up for %v s, fetch %v s", c[0], fetch)
		}
	}
}
