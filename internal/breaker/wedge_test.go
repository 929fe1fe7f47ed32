package breaker

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sony/gobreaker/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
)

// halfOpen returns a gate with a probe under way.
func halfOpen(t *testing.T) (g *gate, probe doneFunc) {
	t.Helper()
	g = testGate(t, Config{})
	fail(t, g, 5)
	sleepOpen(t, g)
	probe = mustEnter(t, g)
	require.Equal(t, HalfOpen, g.status().State)
	mustRefuse(t, g)
	return g, probe
}

func TestAProbeWithoutVerdictMakesRoomForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, probe := halfOpen(t)
		for range 3 {
			probe(time.Now(), pool.Unknown)
			probe = mustEnter(t, g)
			mustRefuse(t, g)
		}
		probe(time.Now(), pool.Healthy)
		assert.Equal(t, Closed, g.status().State)
	})
}

func TestALostProbeIsReplacedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := halfOpen(t)
		for range 3 {
			time.Sleep(time.Minute - 1)
			mustRefuse(t, g)
			time.Sleep(time.Nanosecond)
			mustEnter(t, g)
			mustRefuse(t, g)
		}
	})
}

// An upstream all of whose jobs take longer than Probe to answer would stay
// half open for good if only the newest probe counted.
func TestAnOverdueProbeStillCounts(t *testing.T) {
	for v, want := range map[pool.Verdict]State{
		pool.Healthy: Closed, pool.Unhealthy: Open, pool.Unknown: HalfOpen,
	} {
		synctest.Test(t, func(t *testing.T) {
			g, overdue := halfOpen(t)
			time.Sleep(time.Minute)
			second := mustEnter(t, g)
			overdue(time.Now(), v)
			assert.Equal(t, want, g.status().State)
			if v == pool.Unknown {
				mustRefuse(t, g) // the second probe is still under way
			}
			before := g.status()
			overdue(time.Now(), pool.Unhealthy)
			assert.Equal(t, before, g.status(), "its second verdict counted")
			if v != pool.Unknown {
				second(time.Now(), pool.Unhealthy)
				assert.Equal(t, before, g.status(), "a probe of the state before counted")
			}
		})
	}
}

func TestDoneCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := testGate(t, Config{})
		done := mustEnter(t, g)
		for range 10 {
			done(time.Now(), pool.Unhealthy)
		}
		assert.Equal(t, Closed, g.status().State)

		g, probe := halfOpen(t)
		for range 10 {
			probe(time.Now(), pool.Unknown)
		}
		mustEnter(t, g)
		mustRefuse(t, g)
		probe(time.Now(), pool.Healthy)
		assert.Equal(t, HalfOpen, g.status().State)
	})
}

func TestResultsOfEarlierStatesAreHarmless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := testGate(t, Config{})
		var old []doneFunc
		for range 40 {
			old = append(old, mustEnter(t, g))
		}
		late := func(verdicts ...pool.Verdict) {
			t.Helper()
			before := g.status()
			for _, v := range verdicts {
				old[0](time.Now(), v)
				old = old[1:]
			}
			assert.Equal(t, before, g.status())
		}
		all := []pool.Verdict{
			pool.Unhealthy, pool.Healthy, pool.Unknown, pool.Unhealthy,
			pool.Unhealthy, pool.Unhealthy, pool.Unhealthy, pool.Unhealthy,
		}
		fail(t, g, 5)
		late(all...)
		sleepOpen(t, g)
		late(all...) // past its time, but nothing was let through yet
		probe := mustEnter(t, g)
		late(all...)
		mustRefuse(t, g)
		probe(time.Now(), pool.Healthy)
		late(all...)
		fail(t, g, 4) // and the old failures are not among the five
		assert.Equal(t, Closed, g.status().State)
	})
}

func TestAnInstantAheadOfTheClockIsRefusedNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := testGate(t, Config{Failures: 1})
		fail(t, g, 1)
		_, ok := g.Enter(time.Now().Add(time.Hour)) // the clock has not moved since it opened
		assert.False(t, ok)
		assert.Equal(t, Open, g.status().State)
		sleepOpen(t, g)
		try(t, g, pool.Healthy)
		assert.Equal(t, Closed, g.status().State)
	})
}

// The gate leans on two habits of gobreaker that its documentation leaves open.
func TestWhatGobreakerDoesWhenHalfOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
			MaxRequests: 1,
			Timeout:     time.Nanosecond,
			ReadyToTrip: func(gobreaker.Counts) bool { return true },
			IsExcluded:  func(err error) bool { return errors.Is(err, errUnknown) },
		})
		report, err := b.Allow()
		require.NoError(t, err)
		report(errUnhealthy)
		time.Sleep(2 * time.Nanosecond)

		first, err := b.Allow()
		require.NoError(t, err)
		_, err = b.Allow()
		require.ErrorIs(t, err, gobreaker.ErrTooManyRequests)

		first(errUnknown) // an excluded result frees the place
		_, err = b.Allow()
		require.NoError(t, err)
		_, err = b.Allow()
		require.ErrorIs(t, err, gobreaker.ErrTooManyRequests)

		first(nil) // and its job may still be told of
		assert.Equal(t, gobreaker.StateClosed, b.State())
	})
}
