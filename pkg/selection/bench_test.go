package selection

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPickAllocatesNothing holds every policy to its claim of keeping nothing.
func TestPickAllocatesNothing(t *testing.T) {
	for _, name := range Names() {
		policy, err := New(name)
		require.NoError(t, err)
		for _, n := range []int{1, 14, 1000} {
			rng := rand.New(rand.NewPCG(1, 2))
			views := randomViews(rng, n)
			job := randomJob(rng)
			allocs := testing.AllocsPerRun(20, func() {
				job.Project++
				policy.Pick(job, views, rng)
				job.Project = 0
				policy.Pick(job, views, rng)
			})
			require.Zero(t, allocs, "%s over %d views", name, n)
		}
	}
}

func BenchmarkPick(b *testing.B) {
	for _, name := range Names() {
		for _, n := range []int{14, 1000} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				policy, err := New(name)
				require.NoError(b, err)
				rng := rand.New(rand.NewPCG(1, 2))
				views := randomViews(rng, n)
				job := randomJob(rng)
				b.ReportAllocs()
				for b.Loop() {
					job.Project++
					job.Number++
					policy.Pick(job, views, rng)
				}
			})
		}
	}
}
