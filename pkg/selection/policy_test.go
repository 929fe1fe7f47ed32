package selection_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/pkg/selection/policytest"
)

// oracles returns an oracle for every policy.
func oracles() map[string]policytest.Oracle {
	return map[string]policytest.Oracle{
		"expected":        expectedOracle(thePage()),
		"dynamic":         dynamicOracle,
		"bounded-hash":    func(job selection.Job, views []selection.View) []float64 { return boundedHashOracle(job, views, 1.5) },
		"least-in-flight": leastInFlightOracle,
		"baseline":        baselineOracle,
		"random":          policytest.Any,
	}
}

func TestPoliciesAreTheirOracles(t *testing.T) {
	require.Len(t, oracles(), len(selection.Names()))
	for _, name := range selection.Names() {
		t.Run(name, func(t *testing.T) {
			policy, err := selection.New(name)
			require.NoError(t, err)
			require.Contains(t, oracles(), name)
			require.NoError(t, policytest.Check(policy, oracles()[name]))
		})
	}
}

func TestNewRefusesOtherNames(t *testing.T) {
	for _, name := range []string{"", "Expected", "expected ", "p2c-ewma"} {
		_, err := selection.New(name)
		require.ErrorContains(t, err, `unknown selection policy "`+name+`": want one of expected, dynamic,`)
	}
}

func load(v selection.View) float64 { return v.InFlight / math.Max(v.Weight, 1e-9) }

func cores(v selection.View) float64 {
	if v.Cores == 0 {
		return 8
	}
	return v.Cores
}

func dynamicOracle(job selection.Job, views []selection.View) []float64 {
	if job.Project == 0 {
		return policytest.Any(job, views)
	}
	return policytest.Evenly(len(views), policytest.Lowest(views, policytest.All(views), func(v selection.View) float64 {
		return v.Assigned - 1e9*float64(v.Cache)
	}))
}

func leastInFlightOracle(_ selection.Job, views []selection.View) []float64 {
	return policytest.Evenly(len(views), policytest.Lowest(views, policytest.All(views), load))
}

func boundedHashOracle(job selection.Job, views []selection.View, factor float64) []float64 {
	if job.Project == 0 {
		return leastInFlightOracle(job, views)
	}
	jobs, weights := 1.0, 0.0
	for _, v := range views {
		jobs += v.InFlight
		weights += v.Weight
	}
	for _, i := range policytest.ByRendezvous(job.Project, views) {
		share := 1 / float64(len(views))
		if weights > 0 {
			share = views[i].Weight / weights
		}
		if views[i].InFlight+1 <= math.Ceil(factor*jobs*share) {
			return policytest.Evenly(len(views), []int{i})
		}
	}
	panic("every upstream is above the bound")
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

// TestBaselineReassignsMostProjects reproduces a result of the thesis (4.1.2): the choice is
// stable, but when one upstream leaves, more than half of all projects move.
func TestBaselineReassignsMostProjects(t *testing.T) {
	views, rng := policytest.Idle(14), rand.New(rand.NewPCG(1, 1))
	moved := 0
	counts := make([]int, 14)
	for project := uint64(1); project <= 14000; project++ {
		at := selection.Baseline{}.Pick(selection.Job{Project: project}, views, rng)
		require.Equal(t, at, selection.Baseline{}.Pick(selection.Job{Project: project}, views, nil), "not stable")
		counts[at]++
		rest := slices.Delete(slices.Clone(views), 6, 7)
		if rest[selection.Baseline{}.Pick(selection.Job{Project: project}, rest, nil)].ID != views[at].ID {
			moved++
		}
	}
	require.NoError(t, policytest.Spread(counts, slices.Repeat([]float64{1.0 / 14}, 14)))
	assert.Greater(t, moved, 7000)
}

// A factor of 0 means 1.5, and one below 1 counts as 1.
func TestFactorsOfBoundedHash(t *testing.T) {
	for factor, effective := range map[float64]float64{0: 1.5, 0.5: 1, 1: 1, 1.25: 1.25, 2: 2} {
		oracle := func(job selection.Job, views []selection.View) []float64 {
			return boundedHashOracle(job, views, effective)
		}
		assert.NoError(t, policytest.Check(selection.BoundedHash{Factor: factor}, oracle), "factor %v", factor)
	}
}

// picker returns a function that lets a policy pick one of n views, as a pool does.
func picker(policy selection.Policy, n int) func(selection.Job, []selection.View, *rand.Rand) int {
	coster, ok := policy.(selection.Coster)
	if !ok {
		return policy.Pick
	}
	costs := make([]selection.Cost, n)
	return func(job selection.Job, views []selection.View, rng *rand.Rand) int {
		return coster.PickWithCosts(job, views, costs, rng)
	}
}

// TestPickAllocatesNothing checks that picks of every policy allocate nothing.
func TestPickAllocatesNothing(t *testing.T) {
	for _, name := range selection.Names() {
		policy, err := selection.New(name)
		require.NoError(t, err)
		for _, n := range []int{1, 14, 1000} {
			rng := rand.New(rand.NewPCG(1, 2))
			views := policytest.Views(rng, n)
			job, pick := policytest.Job(rng), picker(policy, n)
			allocs := testing.AllocsPerRun(20, func() {
				job.Project++
				pick(job, views, rng)
				job.Project = 0
				pick(job, views, rng)
			})
			require.Zero(t, allocs, "%s over %d views", name, n)
		}
	}
}

func BenchmarkPick(b *testing.B) {
	for _, name := range selection.Names() {
		for _, n := range []int{14, 1000} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				policy, err := selection.New(name)
				require.NoError(b, err)
				rng := rand.New(rand.NewPCG(1, 2))
				views := policytest.Busy(rng, n)
				job, pick := selection.Job{Fetch: 5}, picker(policy, n)
				b.ReportAllocs()
				for b.Loop() {
					job.Project++
					job.Number++
					pick(job, views, rng)
				}
			})
		}
	}
}
