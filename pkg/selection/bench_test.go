package selection_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/pkg/selection/policytest"
)

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
