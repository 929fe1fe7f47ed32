package rivals

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/hash"
	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/pkg/selection/policytest"
)

// tested are the policies without an oracle, which have separate tests: they remember jobs, or modify expected.
var tested = []string{"master-slave", "master-slave-ns", "master-slave-nr", "reserve", "high-first", "plan"}

// oracles returns an oracle for every other policy of this package.
func oracles() map[string]policytest.Oracle {
	return map[string]policytest.Oracle{
		"round-robin":     roundRobinOracle,
		"cache-threshold": cacheThresholdOracle,
		"sticky-until":    stickyUntilOracle,
		"p2c-ewma":        p2cOracle,
		"reported-hash":   reportedHashOracle,
		"heft":            heftOracle,
		"home-step":       homeStepOracle,
		"stretch":         stretchOracle,
	}
}

func TestPoliciesAreTheirOracles(t *testing.T) {
	require.Len(t, oracles(), len(Names())-len(tested))
	for _, name := range Names() {
		if slices.Contains(tested, name) {
			continue
		}
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
	assert.EqualError(t, err, `unknown selection policy "best": want one of `+strings.Join(selection.Names(), ", ")+
		`, or a policy to compare with: `+strings.Join(Names(), ", "))
}

func load(v selection.View) float64 { return v.InFlight / math.Max(v.Weight, 1e-9) }

func cores(v selection.View) float64 {
	if v.Cores == 0 {
		return 8
	}
	return v.Cores
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

func reportedHashOracle(job selection.Job, views []selection.View) []float64 {
	order, all := policytest.All(views), 1.0
	total := 0.0
	for _, v := range views {
		all, total = all+v.Jobs, total+cores(v)
	}
	below := policytest.Where(views, func(v selection.View) bool { return v.Jobs < math.Ceil(1.5*all*cores(v)/total) })
	if job.Project == 0 || len(below) == 0 {
		return policytest.Evenly(len(views), policytest.Lowest(views, order, func(v selection.View) float64 { return v.Jobs / cores(v) }))
	}
	order = slices.DeleteFunc(policytest.ByRendezvous(job.Project, views), func(i int) bool { return !slices.Contains(below, i) })
	return policytest.Evenly(len(views), order[:1])
}

func heftOracle(job selection.Job, views []selection.View) []float64 {
	return policytest.Evenly(len(views), policytest.Lowest(views, policytest.All(views), func(v selection.View) float64 {
		rate := cmp.Or(v.Rate, cores(v)/cmp.Or(job.Service, 12))
		wait := math.Max(0, v.Jobs-v.BlockedJobs+1-cores(v)) / rate
		if job.Project == 0 {
			return wait
		}
		return wait + (1-v.Warm)*job.Fetch
	}))
}

func homeStepOracle(job selection.Job, views []selection.View) []float64 {
	n := len(views)
	free := policytest.Where(views, func(v selection.View) bool { return v.InFlight < 2*cores(v) })
	if len(free) == 0 {
		return policytest.Any(job, views)
	}
	first := func(at, raw int) int {
		step := raw + 1
		for n > 1 && !slices.ContainsFunc(policytest.All(views), func(k int) bool { return k*step%n == 1 }) { // it has a common factor
			step = step%n + 1
		}
		for !slices.Contains(free, at) {
			at = (at + step) % n
		}
		return at
	}
	if job.Project != 0 {
		mixed := hash.Mix(job.Project)
		return policytest.Evenly(n, []int{first(int(mixed%uint64(n)), int(mixed>>32%uint64(n)))})
	}
	p := make([]float64, n)
	for home := range n {
		for raw := range n {
			p[first(home, raw)] += 1 / float64(n*n)
		}
	}
	return p
}

func stretchOracle(job selection.Job, views []selection.View) []float64 {
	return policytest.Evenly(len(views), policytest.Lowest(views, policytest.All(views), func(v selection.View) float64 {
		work := cores(v) / cmp.Or(v.Rate, cores(v)/cmp.Or(job.Service, 12))
		w := work / (work + (1-v.Warm)*job.Fetch)
		return w/math.Max(0.01, 1-(v.Jobs-v.BlockedJobs)/cores(v)) + (1-w)/math.Max(0.01, 1-v.BlockedJobs/cores(v))
	}))
}
