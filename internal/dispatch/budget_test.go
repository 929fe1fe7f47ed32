package dispatch

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
)

// The budget against a list of everything that ever happened.
func TestRetryBudgetAgainstANaiveOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		b, share := budget{}, []float64{0.2, 0.5, 1}[rng.IntN(3)]
		var jobs, retries []int64 // the second of each
		since := func(seconds []int64, first int64) (n int) {
			for _, s := range seconds {
				if s >= first {
					n++
				}
			}
			return n
		}
		now := time.Unix(1_000_000+rng.Int64N(100), 0)
		for range 2000 {
			now = now.Add(time.Duration(rng.ExpFloat64() * float64(20*time.Millisecond)))
			if rng.IntN(500) == 0 {
				now = now.Add(time.Duration(rng.IntN(30)) * time.Second)
			}
			second := now.Unix()
			if rng.IntN(3) > 0 {
				b.job(now)
				jobs = append(jobs, second)
				continue
			}
			first := second - budgetWindow + 1
			want := since(retries, second) < budgetFloor ||
				float64(since(retries, first)+1) <= share*float64(since(jobs, first))
			require.Equal(t, want, b.take(now, share))
			if want {
				retries = append(retries, second)
			}
		}
	}
}

func TestRetryBudgetOfAClockThatGoesBack(t *testing.T) {
	b := budget{}
	now := time.Unix(1_000_000, 0)
	for range budgetFloor {
		require.True(t, b.take(now, 0.2))
	}
	require.False(t, b.take(now.Add(-time.Hour), 0.2), "the past is counted as the present")
	require.True(t, b.take(now.Add(time.Second), 0.2))
}

// Under a total outage the retries are a share of the jobs.
func TestRetryBudgetUnderTotalOutage(t *testing.T) {
	f := newFixture(t, 4, func(c *Config) { c.Retry.Budget = 0.2 })
	rng := rand.New(rand.NewPCG(5, 5))
	now, jobs, attempts, over := start, 10_000, 0, 0
	for range jobs {
		now = now.Add(time.Duration(rng.ExpFloat64() * float64(10*time.Millisecond)))
		j := f.Begin(Request{})
		for again := true; again; attempts++ {
			g, granted := f.Arrive(now, j)
			require.True(t, granted)
			require.NoError(t, g.Err)
			next := f.fail(now, g, Failure{Outcome: pool.NotStarted, Progress: Heard})
			if again = next.Again; next.OverBudget {
				over++
			}
		}
	}
	assert.InEpsilon(t, 1.2*float64(jobs), attempts, 0.02)
	assert.Greater(t, over, jobs/2)
}
