package breaker

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
)

// The tests run in synctest bubbles: gobreaker reads the clock by itself, and
// there it is the one that they read and move.

func testRNG(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

func testGate(t *testing.T, config Config) *gate {
	t.Helper()
	set, err := New(config, testRNG(1), nil)
	require.NoError(t, err)
	return set.Gate("u:1").(*gate)
}

type doneFunc = func(time.Time, pool.Verdict)

func mustEnter(t *testing.T, g pool.Gate) doneFunc {
	t.Helper()
	require.True(t, g.Ready(time.Now()), "not ready")
	done, ok := g.Enter(time.Now())
	require.True(t, ok, "refused")
	return done
}

func mustRefuse(t *testing.T, g pool.Gate) {
	t.Helper()
	assert.False(t, g.Ready(time.Now()), "ready")
	done, ok := g.Enter(time.Now())
	assert.False(t, ok, "let through")
	assert.Nil(t, done)
}

// try lets one job through for each verdict, one after another.
func try(t *testing.T, g pool.Gate, verdicts ...pool.Verdict) {
	t.Helper()
	for _, v := range verdicts {
		mustEnter(t, g)(time.Now(), v)
	}
}

func fail(t *testing.T, g pool.Gate, times int) {
	t.Helper()
	for range times {
		try(t, g, pool.Unhealthy)
	}
}

// sleepOpen sleeps until an open breaker may be tried, and returns for how long.
func sleepOpen(t *testing.T, g *gate) time.Duration {
	t.Helper()
	require.Equal(t, Open, g.status().State)
	left := time.Until(g.status().Until)
	time.Sleep(left - 1)
	mustRefuse(t, g)
	time.Sleep(time.Nanosecond)
	return left
}

func TestOpensAtTheConfiguredFailuresInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := testGate(t, Config{Failures: 3})
		fail(t, g, 2)
		assert.Equal(t, Closed, g.status().State)
		fail(t, g, 1)
		assert.Equal(t, Open, g.status().State)
		mustRefuse(t, g)
	})
}

func TestASuccessBetweenFailuresForgivesThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := testGate(t, Config{})
		for range 20 {
			fail(t, g, 4)
			try(t, g, pool.Healthy)
		}
		assert.Equal(t, Status{}, g.status())
	})
}

func TestTimeForgivesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := testGate(t, Config{})
		fail(t, g, 4)
		time.Sleep(100 * time.Hour)
		fail(t, g, 1)
		assert.Equal(t, Open, g.status().State)
	})
}

func TestAJobWithoutVerdictCountsNeitherWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := testGate(t, Config{})
		for range 100 {
			try(t, g, pool.Unknown)
		}
		assert.Equal(t, Closed, g.status().State, "as a failure")
		fail(t, g, 4)
		try(t, g, pool.Unknown)
		fail(t, g, 1)
		assert.Equal(t, Open, g.status().State, "as a success")
	})
}

func TestAfterASuccessfulProbeItOpensOnlyAtTheConfiguredFailuresAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := testGate(t, Config{})
		fail(t, g, 5)
		sleepOpen(t, g)
		try(t, g, pool.Healthy)
		assert.Equal(t, Closed, g.status().State)
		fail(t, g, 4)
		assert.Equal(t, Closed, g.status().State)
		fail(t, g, 1)
		assert.Equal(t, Open, g.status().State)
	})
}

func TestAnUnhealthyProbeReopens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := testGate(t, Config{})
		fail(t, g, 5)
		sleepOpen(t, g)
		try(t, g, pool.Unhealthy)
		mustRefuse(t, g)
		assert.Equal(t, Open, g.status().State)
	})
}

func TestHalfOpenLetsOneOfAThousandThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := testGate(t, Config{})
		fail(t, g, 5)
		sleepOpen(t, g)
		var through atomic.Int32
		var probe doneFunc
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() {
				if done, ok := g.Enter(time.Now()); ok {
					through.Add(1)
					probe = done
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 1, through.Load())
		mustRefuse(t, g)
		probe(time.Now(), pool.Healthy)
		assert.Equal(t, Closed, g.status().State)
	})
}

func TestAskingChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var changes int
		set, err := New(Config{}, testRNG(1), func(string, State, State) { changes++ })
		require.NoError(t, err)
		g := set.Gate("u:1").(*gate)
		fail(t, g, 5)
		time.Sleep(time.Hour)
		before := g.status()
		for range 10 {
			assert.True(t, g.Ready(time.Now()))
			set.Status("u:1")
		}
		assert.Equal(t, before, g.status())
		assert.Equal(t, Open, before.State)
		assert.Equal(t, 1, changes)
	})
}

func TestTheOpenTimeDoublesUpToItsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := testGate(t, Config{})
		fail(t, g, 5)
		for i, want := range []float64{5, 10, 20, 40, 60, 60, 60} {
			assert.Equal(t, i+1, g.status().Trips)
			assert.InEpsilon(t, want, sleepOpen(t, g).Seconds(), 0.2)
			try(t, g, pool.Unhealthy)
		}
	})
}

func TestTheDoublingIsForgottenAfterWorkingForOpenMax(t *testing.T) {
	for _, c := range []struct {
		worked time.Duration
		want   float64
	}{{time.Minute - 1, 20}, {time.Minute, 5}} {
		synctest.Test(t, func(t *testing.T) {
			g := testGate(t, Config{})
			fail(t, g, 5)
			sleepOpen(t, g)
			fail(t, g, 1)
			sleepOpen(t, g)
			try(t, g, pool.Healthy)
			time.Sleep(c.worked)
			fail(t, g, 5)
			assert.InEpsilon(t, c.want, sleepOpen(t, g).Seconds(), 0.2)
		})
	}
}

// An upstream that works and fails by turns, two seconds each, is out for
// longer and longer: few of the jobs that it could spoil reach it.
func TestAFlappingUpstreamIsOutEverLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := testGate(t, Config{})
		start, failed := time.Now(), 0
		var open []time.Duration
		for time.Since(start) < 5*time.Minute {
			now := time.Now()
			if done, ok := g.Enter(now); ok {
				if now.Sub(start)%(4*time.Second) < 2*time.Second {
					done(now, pool.Healthy)
				} else {
					failed++
					done(now, pool.Unhealthy)
					if s := g.status(); s.State == Open {
						open = append(open, s.Until.Sub(now))
					}
				}
			}
			time.Sleep(10 * time.Millisecond)
		}
		require.GreaterOrEqual(t, len(open), 5)
		for i, d := range open[:4] {
			assert.InEpsilon(t, 5*float64(int(1)<<i), d.Seconds(), 0.2)
		}
		assert.LessOrEqual(t, failed, 5*len(open), "jobs spoilt, of 30,000")
	})
}

func TestSidecarsReopenAtDifferentTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, last := time.Duration(1<<62), time.Duration(0)
		var sum time.Duration
		for seed := range uint64(20) {
			set, err := New(Config{}, testRNG(seed), nil)
			require.NoError(t, err)
			g := set.Gate("u:1").(*gate)
			fail(t, g, 5)
			open := time.Until(g.status().Until)
			assert.InEpsilon(t, 5, open.Seconds(), 0.2)
			first, last, sum = min(first, open), max(last, open), sum+open
		}
		assert.GreaterOrEqual(t, last-first, sum/20/5, "a spread of less than 20 %%")
	})
}
