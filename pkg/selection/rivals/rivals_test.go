package rivals

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/hash"
	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/pkg/selection/policytest"
)

// oracles has one for every policy of this package.
func oracles() map[string]policytest.Oracle {
	return map[string]policytest.Oracle{
		"baseline":        baselineOracle,
		"round-robin":     roundRobinOracle,
		"home-step":       homeStepOracle,
		"cache-threshold": cacheThresholdOracle,
		"sticky-until":    stickyUntilOracle,
	}
}

func TestPoliciesAreTheirOracles(t *testing.T) {
	require.Len(t, oracles(), len(Names()))
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			policy, err := New(name)
			require.NoError(t, err)
			require.Contains(t, oracles(), name)
			require.NoError(t, policytest.Check(policy, oracles()[name]))
		})
	}
}

func TestNewKnowsAllPoliciesAndNoOther(t *testing.T) {
	for _, name := range All() {
		policy, err := New(name)
		require.NoError(t, err)
		assert.NotNil(t, policy, name)
	}
	_, err := New("best")
	assert.EqualError(t, err, `unknown selection policy "best": want one of expected, dynamic, stretch, bounded-hash, `+
		`p2c-ewma, least-in-flight, random, or to compare with one of baseline, round-robin, home-step, cache-threshold, sticky-until`)
}

// TestBaselineReassignsMostProjects reproduces what the thesis (4.1.2) found:
// it is stable, but when one upstream goes, more than half of all projects move.
func TestBaselineReassignsMostProjects(t *testing.T) {
	views, rng := policytest.Idle(14), rand.New(rand.NewPCG(1, 1))
	moved := 0
	counts, want := make([]int, 14), make([]float64, 14)
	for project := uint64(1); project <= 14000; project++ {
		at := Baseline{}.Pick(selection.Job{Project: project}, views, rng)
		require.Equal(t, at, Baseline{}.Pick(selection.Job{Project: project}, views, nil), "not stable")
		counts[at]++
		rest := slices.Delete(slices.Clone(views), 6, 7)
		if rest[Baseline{}.Pick(selection.Job{Project: project}, rest, nil)].ID != views[at].ID {
			moved++
		}
	}
	for i := range want {
		want[i] = 1.0 / 14
	}
	require.NoError(t, policytest.Spread(counts, want))
	assert.Greater(t, moved, 7000)
}

// TestRoundRobinTakesTurns: every run of n claims visits all n.
func TestRoundRobinTakesTurns(t *testing.T) {
	views := policytest.Idle(5)
	counts := make([]int, 5)
	for number := range uint64(500) {
		counts[RoundRobin{}.Pick(selection.Job{Number: number}, views, nil)]++
	}
	assert.Equal(t, []int{100, 100, 100, 100, 100}, counts)
}

// TestHomeStepForcesARandomOne fills the slots one by one: first the home's,
// then those along the steps, and when all are taken any.
func TestHomeStepForcesARandomOne(t *testing.T) {
	views, rng := policytest.Idle(5), rand.New(rand.NewPCG(1, 1))
	for i := range views {
		views[i].Cores = 2
	}
	var visited []int
	for range 5 * 2 * homeStepSlots {
		at := HomeStep{}.Pick(selection.Job{Project: 3}, views, rng)
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
		counts[HomeStep{}.Pick(selection.Job{Project: 3}, views, rng)]++
	}
	require.NoError(t, policytest.Spread(counts, []float64{0.2, 0.2, 0.2, 0.2, 0.2}))
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

func load(v selection.View) float64 { return v.InFlight / math.Max(v.Weight, 1e-9) }

func cores(v selection.View) float64 {
	if v.Cores == 0 {
		return 8
	}
	return v.Cores
}

func baselineOracle(job selection.Job, views []selection.View) []float64 {
	if job.Project == 0 {
		return policytest.Any(job, views)
	}
	order := policytest.All(views)
	rng := rand.NewPCG(job.Project, 0)
	for i := range order {
		j := i + int(rng.Uint64()%uint64(len(order)-i))
		order[i], order[j] = order[j], order[i]
	}
	return policytest.Evenly(len(views), order[:1])
}

func roundRobinOracle(job selection.Job, views []selection.View) []float64 {
	at := 0
	for range job.Number {
		at = (at + 1) % len(views)
	}
	return policytest.Evenly(len(views), []int{at})
}

func homeStepOracle(job selection.Job, views []selection.View) []float64 {
	n := uint64(len(views))
	free := policytest.Where(views, func(v selection.View) bool { return v.Jobs < 2*cores(v) })
	if job.Project != 0 {
		hash := hash.Mix(job.Project)
		step := hash>>32%n + 1
		for !coprimeTo(step, n) {
			step = step%n + 1
		}
		for k := range n {
			if i := int((hash%n + k*step) % n); slices.Contains(free, i) {
				return policytest.Evenly(len(views), []int{i})
			}
		}
	}
	if len(free) == 0 {
		return policytest.Any(job, views)
	}
	// The start is random, the walk from it is not: only what is possible is
	// checked here, that all are, on free views alone.
	return policytest.Possible(len(views), free)
}

// coprimeTo reports whether no number above 1 divides both.
func coprimeTo(a, b uint64) bool {
	for d := uint64(2); d <= min(a, b); d++ {
		if a%d == 0 && b%d == 0 {
			return false
		}
	}
	return true
}

func cacheThresholdOracle(job selection.Job, views []selection.View) []float64 {
	all := policytest.All(views)
	loads := make([]float64, 0, len(views))
	for _, v := range views {
		loads = append(loads, load(v))
	}
	slices.Sort(loads)
	least, most := loads[0], loads[len(loads)-1]
	uneven := most-least > 64 && most > 1.5*least
	if job.Project != 0 && !uneven {
		all = policytest.Lowest(views, all, func(v selection.View) float64 { return -float64(v.Cache) })
	}
	return policytest.Evenly(len(views), policytest.Lowest(views, all, load))
}

// estimator gives each view's rate, or the median of the others' for its cores.
func estimator(views []selection.View, perCore float64) func(selection.View) float64 {
	var known []float64
	for _, v := range views {
		if v.Rate > 0 {
			known = append(known, v.Rate/cores(v))
		}
	}
	if len(known) > 0 {
		slices.Sort(known)
		perCore = known[(len(known)-1)/2]
	}
	return func(v selection.View) float64 {
		if v.Rate > 0 {
			return v.Rate
		}
		return perCore * cores(v)
	}
}

func stickyUntilOracle(job selection.Job, views []selection.View) []float64 {
	estimate := estimator(views, 1.0/12)
	time := func(v selection.View) float64 { return v.Jobs / estimate(v) }
	chosen := policytest.All(views)
	cached := policytest.Where(views, func(v selection.View) bool { return v.Warm >= 0.8 })
	other := policytest.Where(views, func(v selection.View) bool { return v.Warm < 0.8 })
	if job.Project == 0 {
		return policytest.Evenly(len(views), policytest.Lowest(views, chosen, time))
	}
	if len(cached) > 0 {
		chosen = cached
		if len(other) > 0 {
			best, rest := policytest.Lowest(views, cached, time)[0], policytest.Lowest(views, other, time)[0]
			if time(views[best])-time(views[rest]) > 18 {
				chosen = policytest.All(views)
			}
		}
	}
	return policytest.Evenly(len(views), policytest.Lowest(views, chosen, func(v selection.View) float64 {
		return time(v) + (1-v.Warm)*job.Fetch
	}))
}

// TestPickAllocatesNothing holds every policy to its claim of keeping nothing.
func TestPickAllocatesNothing(t *testing.T) {
	for _, name := range Names() {
		policy, err := New(name)
		require.NoError(t, err)
		rng := rand.New(rand.NewPCG(1, 2))
		job, views := policytest.Job(rng), policytest.Views(rng, 40)
		require.Zero(t, testing.AllocsPerRun(20, func() {
			job.Project++
			policy.Pick(job, views, rng)
		}), name)
	}
}

// A project is cached at one of three upstreams, which have nothing to do.
func ExampleNew() {
	views := policytest.Idle(3)
	views[2].Cache, views[2].Warm = selection.Cached, 1
	job := selection.Job{Project: 7, Fetch: 5}
	for _, name := range []string{"round-robin", "expected"} {
		policy, err := New(name)
		if err != nil {
			panic(err)
		}
		found, rng := 0, rand.New(rand.NewPCG(1, 2))
		for job.Number = range 300 {
			if policy.Pick(job, views, rng) == 2 {
				found++
			}
		}
		fmt.Printf("%s: %d of 300 jobs find the data\n", name, found)
	}
	// Output:
	// round-robin: 100 of 300 jobs find the data
	// expected: 300 of 300 jobs find the data
}
