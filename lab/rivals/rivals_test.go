package rivals

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/pkg/selection/policytest"
)

// oracles has one for every policy of this package.
func oracles() map[string]policytest.Oracle {
	return map[string]policytest.Oracle{
		"baseline":        baselineOracle,
		"round-robin":     roundRobinOracle,
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
	assert.EqualError(t, err, `unknown selection policy "best": want one of expected, dynamic, bounded-hash, `+
		`p2c-ewma, least-in-flight, random, or to compare with one of baseline, round-robin, cache-threshold, sticky-until`)
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

func stickyUntilOracle(job selection.Job, views []selection.View) []float64 {
	time := func(v selection.View) float64 { return v.Jobs / cmp.Or(v.Rate, cores(v)/cmp.Or(job.Service, 12)) }
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
