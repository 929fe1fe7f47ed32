package policytest_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/pkg/selection/policytest"
)

// pick is a policy made of a function.
type pick func(job selection.Job, views []selection.View, rng *rand.Rand) int

func (f pick) Pick(job selection.Job, views []selection.View, rng *rand.Rand) int {
	return f(job, views, rng)
}

// TestMistakesAreFound makes each mistake that the package can detect.
func TestMistakesAreFound(t *testing.T) {
	random := selection.Random{}
	for want, policy := range map[string]pick{
		"changed the views": func(job selection.Job, views []selection.View, rng *rand.Rand) int {
			views[0].Jobs++
			return random.Pick(job, views, rng)
		},
		"picked -1 for": func(selection.Job, []selection.View, *rand.Rand) int { return -1 },
		"jobs without a project at idle upstreams": func(selection.Job, []selection.View, *rand.Rand) int {
			return 0
		},
	} {
		assert.ErrorContains(t, policytest.Contract(policy), want)
		assert.ErrorContains(t, policytest.Check(policy, policytest.Any), want)
	}
	assert.NoError(t, policytest.Contract(random))
	assert.NoError(t, policytest.Check(random, policytest.Any))
	// Policies that never, or too rarely, pick views that the oracle allows.
	last := func(_ selection.Job, views []selection.View) []float64 {
		return policytest.Evenly(len(views), []int{len(views) - 1})
	}
	assert.ErrorContains(t, policytest.Check(random, last), "picked ")
	skewed := pick(func(job selection.Job, views []selection.View, rng *rand.Rand) int {
		if job.Project == 0 {
			return random.Pick(job, views, rng)
		}
		return rng.IntN(1 + rng.IntN(len(views)))
	})
	assert.ErrorContains(t, policytest.Check(skewed, policytest.Any), "want shares")
}

func TestSpread(t *testing.T) {
	assert.NoError(t, policytest.Spread([]int{495, 505}, []float64{0.5, 0.5}))
	assert.Error(t, policytest.Spread([]int{400, 600}, []float64{0.5, 0.5}))
	assert.EqualError(t, policytest.Spread([]int{999, 1}, []float64{1, 0}), "view 1 was picked 1 times of 1000, want never")
	unknown := policytest.Possible(3, []int{0, 1})
	assert.NoError(t, policytest.Spread([]int{1000, 0, 0}, unknown))
	assert.Error(t, policytest.Spread([]int{1000, 0, 1}, unknown))
}

// fewest is a policy as another module could implement it.
type fewest struct{}

func (fewest) Pick(_ selection.Job, views []selection.View, rng *rand.Rand) int {
	var least selection.Least
	for i := range views {
		least.Offer(i, views[i].Latency, rng)
	}
	return least.Index()
}

func ExampleCheck() {
	oracle := func(_ selection.Job, views []selection.View) []float64 {
		best := policytest.Lowest(views, policytest.All(views), func(v selection.View) float64 { return v.Latency })
		return policytest.Evenly(len(views), best)
	}
	fmt.Println(policytest.Check(fewest{}, oracle))
	// Output: <nil>
}
