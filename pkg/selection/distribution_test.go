package selection

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// idle makes n upstreams that are alike and have nothing to do.
func idle(n int) []View {
	views := make([]View, n)
	for i := range views {
		views[i] = View{
			ID: mix(uint64(i + 1)), Weight: 1, Cores: 40, FetchFactor: 1, Rate: 2.4, Latency: 1,
			IdleCPU: 1, IdleIO: 1, Age: 2.5, Uptime: math.Inf(1), Left: math.Inf(1),
		}
	}
	return views
}

// TestBaselineReassignsMostProjects reproduces what the thesis (4.1.2) found:
// it is stable, but when one upstream goes, more than half of all projects move.
func TestBaselineReassignsMostProjects(t *testing.T) {
	views, rng := idle(14), rand.New(rand.NewPCG(1, 1))
	moved := 0
	counts, want := make([]int, 14), make([]float64, 14)
	for project := uint64(1); project <= 14000; project++ {
		at := Baseline{}.Pick(Job{Project: project}, views, rng)
		require.Equal(t, at, Baseline{}.Pick(Job{Project: project}, views, nil), "not stable")
		counts[at]++
		rest := slices.Delete(slices.Clone(views), 6, 7)
		if rest[Baseline{}.Pick(Job{Project: project}, rest, nil)].ID != views[at].ID {
			moved++
		}
	}
	for i := range want {
		want[i] = 1.0 / 14
	}
	requireSpread(t, counts, want)
	assert.Greater(t, moved, 7000)
}

// TestRoundRobinTakesTurns: every run of n claims visits all n.
func TestRoundRobinTakesTurns(t *testing.T) {
	views := idle(5)
	counts := make([]int, 5)
	for number := range uint64(500) {
		counts[RoundRobin{}.Pick(Job{Number: number}, views, nil)]++
	}
	assert.Equal(t, []int{100, 100, 100, 100, 100}, counts)
}

// TestBoundedHashSpillsInOrder sends one hot project's jobs, none of which
// ends: no upstream ever exceeds the bound, and they fill in rendezvous order.
func TestBoundedHashSpillsInOrder(t *testing.T) {
	const project = 99
	views, rng := idle(7), rand.New(rand.NewPCG(1, 1))
	order := byRendezvous(project, views)
	for sent := 1; sent <= 200; sent++ {
		at := BoundedHash{}.Pick(Job{Project: project}, views, rng)
		bound := math.Max(1, math.Ceil(1.5*float64(sent)/7))
		for _, i := range order[:slices.Index(order, at)] {
			require.GreaterOrEqual(t, views[i].InFlight, bound, "job %d passed %d by", sent, i)
		}
		views[at].InFlight++
		require.LessOrEqual(t, views[at].InFlight, bound, "job %d", sent)
	}
	assert.Positive(t, views[order[0]].InFlight)
	assert.Zero(t, views[order[6]].InFlight, "1.5 times the mean fits on five of seven")
}

// TestBoundedHashFollowsWeights: the bound grows with the weight.
func TestBoundedHashFollowsWeights(t *testing.T) {
	views, rng := idle(4), rand.New(rand.NewPCG(1, 1))
	for i := range views {
		views[i].Weight = float64(i)
	}
	for project := uint64(1); project <= 600; project++ {
		views[BoundedHash{}.Pick(Job{Project: project}, views, rng)].InFlight++
	}
	assert.Zero(t, views[0].InFlight)
	for i := range views {
		assert.InDelta(t, 100*i, views[i].InFlight, 40)
	}
}

// TestP2CPrefersTheLessLoaded: with n upstreams of distinct costs the k-th
// best wins 2(n-k)/(n(n-1)) of the draws; the worst none.
func TestP2CPrefersTheLessLoaded(t *testing.T) {
	views, rng := idle(5), rand.New(rand.NewPCG(1, 1))
	for i := range views {
		views[i].InFlight = float64(4 - i)
	}
	counts := make([]int, 5)
	for range 10000 {
		counts[P2CEWMA{}.Pick(Job{}, views, rng)]++
	}
	requireSpread(t, counts, []float64{0, 0.1, 0.2, 0.3, 0.4})
}

// TestP2CUnknownLatencyDrawsNoTraffic: an upstream whose latency is not known
// gets its share by in-flight, no more.
func TestP2CUnknownLatencyDrawsNoTraffic(t *testing.T) {
	views, rng := idle(4), rand.New(rand.NewPCG(1, 1))
	views[0].Latency = 0
	for range 400 {
		views[P2CEWMA{}.Pick(Job{}, views, rng)].InFlight++
	}
	assert.InDelta(t, 100, views[0].InFlight, 10)
}

// TestHomeStepForcesARandomOne fills the slots one by one: first the home's,
// then those along the steps, and when all are taken any.
func TestHomeStepForcesARandomOne(t *testing.T) {
	views, rng := idle(5), rand.New(rand.NewPCG(1, 1))
	for i := range views {
		views[i].Cores = 2
	}
	var visited []int
	for range 5 * 2 * homeStepSlots {
		at := HomeStep{}.Pick(Job{Project: 3}, views, rng)
		if !slices.Contains(visited, at) {
			visited = append(visited, at)
		}
		require.Equal(t, visited[len(visited)-1], at, "back at an upstream that was full")
		views[at].Jobs++
	}
	require.Len(t, visited, 5)
	step := (visited[1] - visited[0] + 5) % 5
	for i := range visited[1:] {
		assert.Equal(t, step, (visited[i+1]-visited[i]+5)%5, "steps of %v", visited)
	}
	counts := make([]int, 5)
	for range 5000 {
		counts[HomeStep{}.Pick(Job{Project: 3}, views, rng)]++
	}
	requireSpread(t, counts, []float64{0.2, 0.2, 0.2, 0.2, 0.2})
}

// TestCoprimeStepsReachAll: for all small numbers of upstreams.
func TestCoprimeStepsReachAll(t *testing.T) {
	for n := uint64(1); n <= 60; n++ {
		for hash := range 3 * n {
			step := coprime(hash, n)
			require.True(t, coprimeTo(step, n), "%d and %d", step, n)
			require.LessOrEqual(t, step, n)
		}
	}
}

// TestNoProjectIsNoProject: without a project a policy must not treat 0 as one
// more project and send all such jobs to one home.
func TestNoProjectIsNoProject(t *testing.T) {
	for _, name := range Names() {
		policy, err := New(name)
		require.NoError(t, err)
		rng := rand.New(rand.NewPCG(5, 6))
		counts, want := make([]int, 8), make([]float64, 8)
		for number := range uint64(4000) {
			counts[policy.Pick(Job{Number: number, Fetch: 5}, idle(8), rng)]++
		}
		for i := range want {
			want[i] = 1.0 / 8
		}
		t.Run(name, func(t *testing.T) { requireSpread(t, counts, want) })
	}
}

// TestAnyViewsAreSurvived: costs beyond all numbers still give a view.
func TestAnyViewsAreSurvived(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	extreme := func() float64 {
		return oneOf(rng, 0, math.SmallestNonzeroFloat64, 1, math.MaxFloat64, 1e300)
	}
	for _, name := range Names() {
		policy, err := New(name)
		require.NoError(t, err)
		for range 2000 {
			views := make([]View, 1+rng.IntN(5))
			for i := range views {
				views[i] = View{
					ID: rng.Uint64(), Weight: extreme(), Cores: extreme(),
					Cache: Cache(rng.IntN(3)), Warm: rng.Float64(), FetchFactor: extreme(),
					InFlight: extreme(), Assigned: extreme(), Jobs: extreme(),
					Stalled: extreme(), Age: extreme(), Rate: extreme(), Latency: extreme(),
					IdleCPU: rng.Float64(), IdleIO: rng.Float64(), Uptime: extreme(), Left: extreme(),
				}
			}
			job := Job{
				Project: oneOf(rng, 0, 1, rng.Uint64()), Priority: Priority(rng.IntN(2)), Number: rng.Uint64(),
				Fetch: extreme(), Busy: rng.Float64(),
			}
			got := policy.Pick(job, views, rng)
			require.True(t, got >= 0 && got < len(views), "%s picked %d for %+v of %+v", name, got, job, views)
		}
	}
}
