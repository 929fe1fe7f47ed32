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

// TestExpectedCostsAreMonotone: more of what is bad never costs less.
func TestExpectedCostsAreMonotone(t *testing.T) {
	rng := rand.New(rand.NewPCG(71, 72))
	policy := newExpected(t, 0)
	for range 20000 {
		job, views := policytest.Case(rng)
		at := rng.IntN(len(views))
		before, after := make([]selection.Cost, len(views)), make([]selection.Cost, len(views))
		policy.Costs(job, views, before)
		v := &views[at]
		switch rng.IntN(5) {
		case 0:
			v.Jobs++
		case 1:
			v.Stalled++
		case 2:
			if v.Rate == 0 {
				continue // a known rate replaces a mean
			}
			v.Rate /= 2
		case 3:
			v.Warm /= 2
		case 4:
			v.Left /= 2
		}
		policy.Costs(job, views, after)
		require.GreaterOrEqual(t, after[at].Total, before[at].Total-1e-9, "%+v for %+v", views[at], job)
	}
}

// TestExpectedDoesNotHerd: two sidecars with the same reports, each counting
// its own claims only, share a burst of a hundred jobs without a project
// between upstreams; the most loaded gets at most 1.5 times the least.
func TestExpectedDoesNotHerd(t *testing.T) {
	policy := newExpected(t, 0)
	for _, n := range []int{2, 5, 7, 14} {
		for _, reported := range []float64{0, 20, 38, 60} {
			for seed := range uint64(20) {
				sent, rng := make([]float64, n), rand.New(rand.NewPCG(seed, 0))
				for range 2 {
					views := policytest.Idle(n)
					for i := range views {
						busy(&views[i], reported-views[i].Cores)
					}
					for range 50 {
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

// TestExpectedDoesNotHerdOnTheLeast: many sidecars that see one upstream a
// little ahead in the same old reports, and have one job each, do not all take it.
func TestExpectedDoesNotHerdOnTheLeast(t *testing.T) {
	views, rng := policytest.Idle(14), rand.New(rand.NewPCG(1, 1))
	for i := range views {
		busy(&views[i], 20)
		views[i].Age = 5
	}
	busy(&views[3], 19)
	took := 0
	for range 1000 {
		if newExpected(t, 0).Pick(selection.Job{}, views, rng) == 3 {
			took++
		}
	}
	assert.InDelta(t, 1000*2.0/14, took, 45, "one in seven pairs has it")
}

// TestExpectedPartsMatter: switching any part off changes some pick.
func TestExpectedPartsMatter(t *testing.T) {
	require.Len(t, selection.Parts(), 10)
	full := newExpected(t, 0)
	for _, part := range selection.Parts() {
		without := newExpected(t, part)
		rng := rand.New(rand.NewPCG(81, 82))
		differ := 0
		for seed := range uint64(5000) {
			job, views := policytest.Case(rng)
			a := full.Pick(job, views, rand.New(rand.NewPCG(seed, 0)))
			b := without.Pick(job, views, rand.New(rand.NewPCG(seed, 0)))
			if a != b {
				differ++
			}
		}
		assert.Positive(t, differ, part.String())
		assert.NotContains(t, part.String(), "parts")
	}
}

func TestNewExpectedRefusesNonsense(t *testing.T) {
	for want, c := range map[string]selection.ExpectedConfig{
		"expected: RankPrice is -1: want a finite number, 0 (for 1.5) or more":                                           {RankPrice: -1},
		"expected: SlowStart is NaN: want a finite number, 0 (for 60) or more":                                           {SlowStart: math.NaN()},
		"expected: Band is +Inf: want a finite number, 0 (for 0.05) or more":                                             {Band: math.Inf(1)},
		"expected: WaitPrice is 0.5: want 1 or more: below 1, a full upstream could cost less than one with a free core": {WaitPrice: 0.5},
		"expected: Spare is 1: want a share of the cores below 1":                                                        {Spare: 1},
		"expected: WarmAt is 1.5: want a probability, at most 1":                                                         {WarmAt: 1.5},
		"expected: Off has the bits 0x8000, which are no part":                                                           {Off: 0x8000},
	} {
		_, err := selection.NewExpected(c)
		assert.EqualError(t, err, want)
	}
}
