package selection_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/pkg/selection/policytest"
)

// oracles has one for every policy.
func oracles() map[string]policytest.Oracle {
	return map[string]policytest.Oracle{
		"expected":        expectedOracle(selection.DefaultExpected()),
		"dynamic":         dynamicOracle,
		"bounded-hash":    func(job selection.Job, views []selection.View) []float64 { return boundedHashOracle(job, views, 1.5) },
		"p2c-ewma":        p2cOracle,
		"least-in-flight": leastInFlightOracle,
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
	for _, name := range []string{"", "Expected", "expected ", "baseline"} {
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

func p2cOracle(_ selection.Job, views []selection.View) []float64 {
	n := len(views)
	p := make([]float64, n)
	if n == 1 {
		return []float64{1}
	}
	cost := func(v selection.View, latency float64) float64 {
		return (v.InFlight + 1) / math.Max(v.Weight, 1e-9) * latency
	}
	for a, v := range views {
		for b, w := range views {
			known := v.Latency > 0 && w.Latency > 0
			ca, cb := cost(v, 1), cost(w, 1)
			if known {
				ca, cb = cost(v, v.Latency), cost(w, w.Latency)
			}
			chance := 1 / float64(n*(n-1))
			switch {
			case a == b:
			case ca <= cb:
				p[a] += chance
			default:
				p[b] += chance
			}
		}
	}
	return p
}
