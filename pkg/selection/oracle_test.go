package selection

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryPolicyHasAnOracle(t *testing.T) {
	for _, name := range Names() {
		require.Contains(t, oracles(), name)
	}
	require.Len(t, oracles(), len(Names()))
}

// TestPicksAreTheOracles checks many single picks, of all kinds of views.
func TestPicksAreTheOracles(t *testing.T) {
	for name, oracle := range oracles() {
		t.Run(name, func(t *testing.T) {
			policy, err := New(name)
			require.NoError(t, err)
			rng := rand.New(rand.NewPCG(11, 12))
			for range 4000 {
				job, views := randomCase(rng)
				before := slices.Clone(views)
				got := policy.Pick(job, views, rng)
				require.Equal(t, before, views, "the views are changed")
				require.NotZero(t, oracle(job, views)[got], "picked %d for %+v of %+v", got, job, views)
			}
		})
	}
}

// TestPicksAreSpreadLikeTheOracles repeats the pick in fewer cases and
// compares how often each view comes out.
func TestPicksAreSpreadLikeTheOracles(t *testing.T) {
	const picks = 2000
	for name, oracle := range oracles() {
		t.Run(name, func(t *testing.T) {
			policy, err := New(name)
			require.NoError(t, err)
			rng := rand.New(rand.NewPCG(21, 22))
			for range 100 {
				job, views := randomCase(rng)
				counts := make([]int, len(views))
				for range picks {
					counts[policy.Pick(job, views, rng)]++
				}
				requireSpread(t, counts, oracle(job, views))
			}
		})
	}
}

// TestPermutedLoads goes through every order of a few loads: a policy that
// looks right in one may keep the wrong candidate in another.
func TestPermutedLoads(t *testing.T) {
	for name, oracle := range oracles() {
		policy, err := New(name)
		require.NoError(t, err)
		rng := rand.New(rand.NewPCG(31, 32))
		for _, loads := range [][]float64{{5, 3}, {9, 5, 3}, {0, 0, 4, 4}, {1, 2, 3, 4, 4}} {
			permute(loads, func(loads []float64) {
				views := make([]View, len(loads))
				for i, load := range loads {
					views[i] = View{
						ID: uint64(i + 1), Weight: 1, Cores: 4, Warm: 1, Cache: Cached,
						InFlight: load, Assigned: load, Jobs: load, Rate: 1, Latency: 1,
						IdleCPU: 1 - load/10, IdleIO: 1, Uptime: math.Inf(1), Left: math.Inf(1),
					}
				}
				for _, project := range []uint64{0, 7} {
					job := Job{Project: project}
					counts := make([]int, len(views))
					for range 300 {
						counts[policy.Pick(job, views, rng)]++
					}
					requireSpread(t, counts, oracle(job, views))
				}
			})
		}
	}
}

// permute calls f with every order of s.
func permute(s []float64, f func([]float64)) {
	var rec func(int)
	rec = func(k int) {
		if k == len(s) {
			f(s)
			return
		}
		for i := k; i < len(s); i++ {
			s[k], s[i] = s[i], s[k]
			rec(k + 1)
			s[k], s[i] = s[i], s[k]
		}
	}
	rec(0)
}

// randomCase makes a job, one in five without a project, and mostly up to nine
// views, sometimes more than are ever ranked.
func randomCase(rng *rand.Rand) (Job, []View) {
	job := randomJob(rng)
	if rng.IntN(5) == 0 {
		job.Project = 0
	}
	n := 1 + rng.IntN(9)
	if rng.IntN(50) == 0 {
		n = 10 * lastRank
	}
	views := randomViews(rng, n)
	if rng.IntN(4) == 0 { // twins, but for who they are
		for i := range views {
			id := views[i].ID
			views[i] = views[0]
			views[i].ID = id
		}
	}
	return job, views
}

// requireSpread compares counts with probabilities by a chi-square bound that
// one fair case in a million exceeds.
func requireSpread(t *testing.T, counts []int, want []float64) {
	t.Helper()
	total := 0
	for _, n := range counts {
		total += n
	}
	square, freedom := 0.0, -1.0
	for i, p := range want {
		switch {
		case math.IsNaN(p):
			return
		case p == 0:
			require.Zero(t, counts[i], "view %d, of %v", i, want)
		default:
			e := p * float64(total)
			square += (float64(counts[i]) - e) * (float64(counts[i]) - e) / e
			freedom++
		}
	}
	freedom = math.Max(freedom, 1)
	// Wilson and Hilferty's approximation of the quantile.
	bound := freedom * math.Pow(1-2/(9*freedom)+4.75*math.Sqrt(2/(9*freedom)), 3)
	require.LessOrEqual(t, square, bound, "picked %v, want shares %v", counts, want)
}
