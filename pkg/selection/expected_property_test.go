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

// TestExpectedCostsAreMonotone: a worse figure never lowers the cost.
func TestExpectedCostsAreMonotone(t *testing.T) {
	rng := rand.New(rand.NewPCG(71, 72))
	policy := selection.DefaultExpected()
	for range 20000 {
		job, views := policytest.Case(rng)
		at := rng.IntN(len(views))
		before := costsOf(policy, job, views)
		v := &views[at]
		switch rng.IntN(4) {
		case 0:
			v.Jobs++
		case 1:
			if v.Rate == 0 {
				continue // a known rate replaces a mean
			}
			v.Rate /= 2
		case 2:
			v.Warm /= 2
		case 3:
			v.Left /= 2 // 0 remains unknown
		}
		after := costsOf(policy, job, views)
		require.GreaterOrEqual(t, after[at].Total, before[at].Total-1e-9, "%+v for %+v", views[at], job)
	}
}

// TestExpectedHasNoUnitOfTime: if all times are multiplied by the same factor, the choice does not change.
func TestExpectedHasNoUnitOfTime(t *testing.T) {
	rng := rand.New(rand.NewPCG(73, 74))
	policy := selection.DefaultExpected()
	for seed := range uint64(20000) {
		job, views := policytest.Case(rng)
		job.Service = max(job.Service, 0.1)
		want := policy.Pick(job, views, rand.New(rand.NewPCG(seed, 0)))
		longer := math.Ldexp(1, rng.IntN(21)-10) // a power of two causes no rounding
		job.Service, job.Fetch = job.Service*longer, job.Fetch*longer
		for i := range views {
			v := &views[i]
			v.Rate, v.Latency, v.Left = v.Rate/longer, v.Latency*longer, v.Left*longer
		}
		require.Equal(t, want, policy.Pick(job, views, rand.New(rand.NewPCG(seed, 0))), "times %v: %+v of %+v", longer, job, views)
	}
}

// TestExpectedDoesNotHerd: two sidecars with the same reports, each counting its own
// claims only, share a burst of jobs without a project between upstreams; the most
// loaded gets at most 1.5 times the least.
func TestExpectedDoesNotHerd(t *testing.T) {
	policy := selection.DefaultExpected()
	for _, n := range []int{2, 5, 7, 14} {
		for _, reported := range []float64{0, 38, 60} {
			for seed := range uint64(20) {
				sent, rng := make([]float64, n), rand.New(rand.NewPCG(seed, 0))
				for range 2 {
					views := policytest.Idle(n)
					for i := range views {
						busy(&views[i], reported-views[i].Cores)
					}
					for range 50 * n {
						at := policy.Pick(selection.Job{Fetch: 5}, views, rng)
						views[at].Jobs++
						views[at].InFlight++
						sent[at]++
					}
				}
				require.LessOrEqual(t, slices.Max(sent), 1.5*slices.Min(sent), "after %v jobs each: %v", reported, sent)
			}
		}
	}
}

// TestExpectedPartsMatter: switching any part off changes some pick.
func TestExpectedPartsMatter(t *testing.T) {
	full := selection.DefaultExpected()
	for name, change := range map[string]func(*selection.Expected){
		"spare": func(e *selection.Expected) { e.Spare = 0 }, "fetch": func(e *selection.Expected) { e.Fetch = 0 },
		"rank": noRank, "crowding": noCrowding, "tail": noTail,
	} {
		rng := rand.New(rand.NewPCG(81, 82))
		differ := 0
		for seed := range uint64(5000) {
			job, views := policytest.Case(rng)
			a := full.Pick(job, views, rand.New(rand.NewPCG(seed, 0)))
			b := without(change).Pick(job, views, rand.New(rand.NewPCG(seed, 0)))
			if a != b {
				differ++
			}
		}
		assert.Positive(t, differ, name)
	}
}
