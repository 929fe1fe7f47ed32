package sim

import (
	"iter"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/lab/trace"
)

// spread assigns the jobs to the submitters in turn.
func spread(jobs iter.Seq[trace.Job]) iter.Seq[trace.Job] {
	return func(yield func(trace.Job) bool) {
		next := int64(0)
		for j := range jobs {
			next++
			if j.Submitter = next; !yield(j) {
				return
			}
		}
	}
}

// Forty sidecars that read the same reports do not all send jobs without a project to the
// cheapest upstream until the next report.
func TestManySidecarsDoNotHerd(t *testing.T) {
	mean := func(load float64, policy string) float64 {
		const servers, cores, work, n = 14, 16, 2.0, 60_000
		jobs := poisson{rng: rand.New(rand.NewPCG(8, 8)), rate: load * servers * cores / work, work: work, n: n}
		sum := 0.0
		c := setup(t, policy, "none", servers, cores)
		c.Sidecars.Count = 40
		c.Source = spread(jobs.all)
		c.Observe = func(r *Result) { sum += r.Wait.Seconds() }
		_, err := Run(t.Context(), c)
		require.NoError(t, err)
		return sum / n
	}
	for _, load := range []float64{0.7, 0.9} {
		with, without := mean(load, "expected"), mean(load, "least-in-flight")
		t.Logf("load %v: mean wait %.4f s, %.4f s by own jobs alone", load, with, without)
		assert.Less(t, with, 1.2*without, "load %v", load)
	}
}
