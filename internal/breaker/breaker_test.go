package breaker

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func testRNG(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// fixture is a breaker and the time, which only the test moves.
type fixture struct {
	*Breaker
	t   *testing.T
	now time.Time
}

func newFixture(t *testing.T, s Settings) *fixture {
	t.Helper()
	set, err := New(Config{Settings: s, Rand: testRNG(1)})
	require.NoError(t, err)
	return of(t, set, "u:1")
}

// of is a fixture around the breaker of a set.
func of(t *testing.T, set *Set, address string) *fixture {
	return &fixture{Breaker: set.Join(address), t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
}

func (f *fixture) sleep(d time.Duration) { f.now = f.now.Add(d) }

func (f *fixture) state() State { return f.Status().State }

func (f *fixture) enter() doneFunc {
	f.t.Helper()
	require.True(f.t, f.Ready(f.now), "not ready")
	done, ok := f.Enter(f.now)
	require.True(f.t, ok, "refused")
	return done
}

func (f *fixture) refuses() {
	f.t.Helper()
	assert.False(f.t, f.Ready(f.now), "ready")
	done, ok := f.Enter(f.now)
	assert.False(f.t, ok, "let through")
	assert.Nil(f.t, done)
}

// try lets one job through for each verdict, one after another.
func (f *fixture) try(verdicts ...Verdict) {
	f.t.Helper()
	for _, v := range verdicts {
		f.enter()(f.now, v)
	}
}

func (f *fixture) fail(times int) {
	f.t.Helper()
	for range times {
		f.try(Unhealthy)
	}
}

// sleepOpen sleeps until an open breaker may be tried, and returns for how long.
func (f *fixture) sleepOpen() time.Duration {
	f.t.Helper()
	require.Equal(f.t, Open, f.state())
	left := f.Status().Until.Sub(f.now)
	f.sleep(left - 1)
	f.refuses()
	f.sleep(1)
	return left
}

// halfOpen brings the breaker to its first probe.
func (f *fixture) halfOpen() (probe doneFunc) {
	f.t.Helper()
	f.fail(5)
	f.sleepOpen()
	probe = f.enter()
	require.Equal(f.t, HalfOpen, f.state())
	f.refuses()
	return probe
}

func TestOpensAtTheConfiguredFailuresInARow(t *testing.T) {
	s := Default()
	s.Failures = 3
	f := newFixture(t, s)
	f.fail(2)
	assert.Equal(t, Closed, f.state())
	f.fail(1)
	assert.Equal(t, Open, f.state())
	f.refuses()
}

func TestASuccessBetweenFailuresForgivesThem(t *testing.T) {
	f := newFixture(t, Default())
	for range 20 {
		f.fail(4)
		f.try(Healthy)
	}
	assert.Equal(t, Status{}, f.Status())
}

func TestTimeForgivesNothing(t *testing.T) {
	f := newFixture(t, Default())
	f.fail(4)
	f.sleep(100 * time.Hour)
	f.fail(1)
	assert.Equal(t, Open, f.state())
}

func TestAJobWithoutVerdictCountsNeitherWay(t *testing.T) {
	f := newFixture(t, Default())
	for range 100 {
		f.try(Unknown)
	}
	assert.Equal(t, Closed, f.state(), "as a failure")
	f.fail(4)
	f.try(Unknown)
	f.fail(1)
	assert.Equal(t, Open, f.state(), "as a success")
}

func TestAfterASuccessfulProbeItOpensOnlyAtTheConfiguredFailuresAgain(t *testing.T) {
	f := newFixture(t, Default())
	f.fail(5)
	f.sleepOpen()
	f.try(Healthy)
	assert.Equal(t, Closed, f.state())
	f.fail(4)
	assert.Equal(t, Closed, f.state())
	f.fail(1)
	assert.Equal(t, Open, f.state())
}

func TestAnUnhealthyProbeReopens(t *testing.T) {
	f := newFixture(t, Default())
	f.fail(5)
	f.sleepOpen()
	f.try(Unhealthy)
	f.refuses()
	assert.Equal(t, Open, f.state())
}

func TestHalfOpenLetsOneOfAThousandThrough(t *testing.T) {
	f := newFixture(t, Default())
	f.fail(5)
	f.sleepOpen()
	var through []doneFunc
	for range 1000 {
		if done, ok := f.Enter(f.now); ok {
			through = append(through, done)
		}
	}
	require.Len(t, through, 1)
	f.refuses()
	through[0](f.now, Healthy)
	assert.Equal(t, Closed, f.state())
}

func TestAskingChangesNothing(t *testing.T) {
	f := newFixture(t, Default())
	f.fail(5)
	f.sleep(time.Hour)
	before, status := *f.Breaker, f.Status()
	for range 10 {
		assert.True(t, f.Ready(f.now))
		f.Status()
	}
	assert.Equal(t, before, *f.Breaker)
	assert.Equal(t, status, f.Status())
	assert.Equal(t, Open, status.State)
}

func TestTheOpenTimeDoublesUpToItsBound(t *testing.T) {
	f := newFixture(t, Default())
	f.fail(5)
	for i, want := range []float64{5, 10, 20, 40, 60, 60, 60} {
		assert.Equal(t, i+1, f.Status().Trips)
		assert.InEpsilon(t, want, f.sleepOpen().Seconds(), 0.2)
		f.try(Unhealthy)
	}
}

func TestTheDoublingIsForgottenAfterWorkingForOpenMax(t *testing.T) {
	for _, c := range []struct {
		worked time.Duration
		want   float64
		trips  int
	}{{time.Minute - 1, 20, 3}, {time.Minute, 5, 1}} {
		f := newFixture(t, Default())
		f.fail(5)
		f.sleepOpen()
		f.fail(1)
		f.sleepOpen()
		f.try(Healthy)
		f.sleep(c.worked)
		f.fail(5)
		assert.InEpsilon(t, c.want, f.sleepOpen().Seconds(), 0.2)
		assert.Equal(t, c.trips, f.Status().Trips)
	}
}

// An upstream that works and fails by turns, two seconds each, is out for
// longer and longer: few of the jobs that it could spoil reach it.
func TestAFlappingUpstreamIsOutEverLonger(t *testing.T) {
	f := newFixture(t, Default())
	start, failed := f.now, 0
	var open []time.Duration
	for f.now.Sub(start) < 5*time.Minute {
		if done, ok := f.Enter(f.now); ok {
			if f.now.Sub(start)%(4*time.Second) < 2*time.Second {
				done(f.now, Healthy)
			} else {
				failed++
				done(f.now, Unhealthy)
				if s := f.Status(); s.State == Open {
					open = append(open, s.Until.Sub(f.now))
				}
			}
		}
		f.sleep(10 * time.Millisecond)
	}
	require.GreaterOrEqual(t, len(open), 5)
	for i, d := range open[:4] {
		assert.InEpsilon(t, 5*float64(int(1)<<i), d.Seconds(), 0.2)
	}
	assert.LessOrEqual(t, failed, 5*len(open), "jobs spoilt, of 30,000")
}

func TestSidecarsReopenAtDifferentTimes(t *testing.T) {
	first, last := time.Duration(1<<62), time.Duration(0)
	var sum time.Duration
	for seed := range uint64(20) {
		set, err := New(Config{Settings: Default(), Rand: testRNG(seed)})
		require.NoError(t, err)
		f := of(t, set, "u:1")
		f.fail(5)
		open := f.Status().Until.Sub(f.now)
		assert.InEpsilon(t, 5, open.Seconds(), 0.2)
		first, last, sum = min(first, open), max(last, open), sum+open
	}
	assert.GreaterOrEqual(t, last-first, sum/20/5, "a spread of less than 20 %%")
}

func TestAProbeWithoutVerdictMakesRoomForTheNext(t *testing.T) {
	f := newFixture(t, Default())
	probe := f.halfOpen()
	for range 3 {
		probe(f.now, Unknown)
		probe = f.enter()
		f.refuses()
	}
	probe(f.now, Healthy)
	assert.Equal(t, Closed, f.state())
}

func TestALostProbeIsReplacedInTime(t *testing.T) {
	f := newFixture(t, Default())
	f.halfOpen()
	for range 3 {
		f.sleep(time.Minute - 1)
		f.refuses()
		f.sleep(1)
		f.enter()
		f.refuses()
	}
}

// An upstream all of whose jobs take longer than probeTimeout to answer would
// stay half open for good if only the newest probe counted.
func TestAnOverdueProbeStillCounts(t *testing.T) {
	for v, want := range map[Verdict]State{Healthy: Closed, Unhealthy: Open, Unknown: HalfOpen} {
		f := newFixture(t, Default())
		overdue := f.halfOpen()
		f.sleep(time.Minute)
		second := f.enter()
		overdue(f.now, v)
		assert.Equal(t, want, f.state())
		if v == Unknown {
			f.refuses() // the second probe is still under way
		}
		before := f.Status()
		overdue(f.now, Unhealthy)
		assert.Equal(t, before, f.Status(), "its second verdict counted")
		if v != Unknown {
			second(f.now, Unhealthy)
			assert.Equal(t, before, f.Status(), "a probe of the state before counted")
		}
	}
}

func TestDoneCountsOnce(t *testing.T) {
	f := newFixture(t, Default())
	done := f.enter()
	for range 10 {
		done(f.now, Unhealthy)
	}
	assert.Equal(t, Closed, f.state())

	f = newFixture(t, Default())
	probe := f.halfOpen()
	for range 10 {
		probe(f.now, Unknown)
	}
	f.enter()
	f.refuses()
	probe(f.now, Healthy)
	assert.Equal(t, HalfOpen, f.state())
}

func TestVerdictsOfEarlierStatesAreHarmless(t *testing.T) {
	f := newFixture(t, Default())
	var old []doneFunc
	for range 40 {
		old = append(old, f.enter())
	}
	late := func() {
		t.Helper()
		before := f.Status()
		for _, v := range []Verdict{
			Unhealthy, Healthy, Unknown, Unhealthy,
			Unhealthy, Unhealthy, Unhealthy, Unhealthy,
		} {
			old[0](f.now, v)
			old = old[1:]
		}
		assert.Equal(t, before, f.Status())
	}
	f.fail(5)
	late()
	f.sleepOpen()
	late() // past its time, but nothing was let through yet
	probe := f.enter()
	late()
	f.refuses()
	probe(f.now, Healthy)
	late()
	f.fail(4) // and the old failures are not among the five
	assert.Equal(t, Closed, f.state())
}
