package sim

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/pkg/trace"
)

// coresSeen remembers the cores of the first view.
type coresSeen struct{ cores float64 }

func (c *coresSeen) Pick(_ selection.Job, views []selection.View, _ *rand.Rand) int {
	c.cores = views[0].Cores
	return 0
}

// What is reserved follows the share of high jobs; high jobs see all cores.
func TestReserveFollowsArrivals(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	seen := &coresSeen{}
	r := &reserve{Policy: seen, weight: 0.5}
	views := []selection.View{{Cores: 16}}
	for _, share := range []float64{0, 0.2, 0.8, 0.2} {
		sum, low := 0.0, 0.0
		for n := range 4000 {
			job := selection.Job{Priority: selection.Low}
			if rng.Float64() < share {
				job.Priority = selection.High
			}
			require.Equal(t, 0, r.Pick(job, views, rng))
			switch {
			case job.Priority == selection.High:
				require.Equal(t, 16.0, seen.cores)
			case n >= 2000:
				sum, low = sum+seen.cores, low+1
			}
		}
		assert.InDelta(t, 16*(1-0.5*share), sum/low, 0.5, "a share of %v", share)
	}
	assert.Equal(t, 16.0, views[0].Cores, "the views stay as they are")
}

// Each sidecar measures for itself, and jobs without high ones see no difference.
func TestReserveInASidecar(t *testing.T) {
	cfg := setup(t, "expected", "none", 2, 4)
	cfg.Sidecars.Count, cfg.Sidecars.Reserve = 2, 1
	cfg.Source, cfg.Observe = &trace.List{}, func(*Result) {}
	w, err := newWorld(cfg)
	require.NoError(t, err)
	require.Len(t, w.sidecars, 2)
	first, second := w.cfg.policy(), w.cfg.policy()
	assert.NotSame(t, first, second)
	cfg.Sidecars.Reserve = 0
	assert.Equal(t, cfg.Policy, cfg.policy())
}
