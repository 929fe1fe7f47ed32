package sim

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/lab/trace"
)

// spread gives each job of a source to the next submitter.
type spread struct {
	trace.Source
	next int64
}

func (s *spread) Next() (trace.Job, error) {
	j, err := s.Source.Next()
	s.next++
	j.Submitter = s.next
	return j, err
}

// Forty sidecars that read the same reports, and jobs without a project: they neither
// herd to the cheapest upstream until the next report.
func TestSidecarsKeepApart(t *testing.T) {
	mean := func(load float64, policy string) float64 {
		const servers, cores, work, n = 14, 16, 2.0, 60_000
		jobs := &poisson{rng: rand.New(rand.NewPCG(8, 8)), rate: load * servers * cores / work, work: work, n: n}
		sum := 0.0
		c := setup(t, policy, "none", servers, cores)
		c.Sidecars.Count = 40
		c.Source = &spread{Source: jobs}
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
