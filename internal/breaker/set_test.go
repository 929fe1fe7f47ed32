package breaker

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// doneFunc is what to call with the verdict on a job.
type doneFunc = func(time.Time, Verdict)

func enter(b *Breaker, now time.Time) (doneFunc, bool) {
	e, ok := b.Enter(now)
	if !ok {
		return nil, false
	}
	return func(now time.Time, v Verdict) { b.Tell(now, &e, v) }, true
}

// Enter returns what to call with the verdict.
func (f *fixture) Enter(now time.Time) (doneFunc, bool) { return enter(f.Breaker, now) }

func newSet(t *testing.T) *Set {
	t.Helper()
	set, err := New(Config{Settings: Default(), Rand: testRNG(1)})
	require.NoError(t, err)
	return set
}

func TestUpstreamsFailAlone(t *testing.T) {
	for n := 1; n <= 3; n++ {
		for failing := 0; failing <= n; failing++ {
			set := newSet(t)
			for i := range failing {
				of(t, set, fmt.Sprintf("u:%d", i)).fail(5)
			}
			ready := 0
			for i := range n {
				if f := of(t, set, fmt.Sprintf("u:%d", i)); f.Ready(f.now) {
					ready++
				}
			}
			assert.Equal(t, n-failing, ready, "%d upstreams, %d failing", n, failing)
		}
	}
}

func TestStatusSaysSinceWhenAndUntilWhen(t *testing.T) {
	f := newFixture(t, Default())
	assert.Equal(t, Status{}, f.Status())
	f.sleep(time.Second)
	f.fail(5)
	status := f.Status()
	assert.Equal(t, Open, status.State)
	assert.Equal(t, f.now, status.Since)
	assert.InEpsilon(t, 5, status.Until.Sub(f.now).Seconds(), 0.2)
	assert.Equal(t, 1, status.Trips)

	text, err := json.Marshal(status)
	require.NoError(t, err)
	assert.Contains(t, string(text), `"state":"open"`)

	f.sleepOpen()
	f.try(Healthy)
	assert.Equal(t, Status{State: Closed, Since: f.now, Trips: 1}, f.Status())
}

func TestAFailingUpstreamThatRegistersAnewIsRemembered(t *testing.T) {
	set := newSet(t)
	f := of(t, set, "u:1")
	f.fail(5)

	set.Leave(f.now, "u:1")
	f.sleep(time.Minute - 1)
	set.Leave(f.now, "another") // forgets what is old by now
	assert.Equal(t, Open, set.Join("u:1").Status().State)

	f.sleep(time.Hour)
	set.Leave(f.now, "another")
	assert.Equal(t, 1, set.Join("u:1").Status().Trips, "forgotten although it is back")

	set.Leave(f.now, "u:1")
	f.sleep(time.Minute)
	set.Leave(f.now, "another")
	assert.Empty(t, set.breakers)
	assert.Equal(t, Status{}, set.Join("u:1").Status())
}

func TestUpstreamsThatComeAndGoLeaveNothing(t *testing.T) {
	set := newSet(t)
	now := of(t, set, "u:0").now
	for i := range 1000 {
		address := fmt.Sprintf("u:%d", i)
		f := of(t, set, address)
		f.now = now
		if i%2 == 0 {
			f.try(Healthy)
		} else {
			f.fail(5)
		}
		set.Leave(now, address)
		now = now.Add(time.Second)
	}
	assert.LessOrEqual(t, len(set.breakers), 31) // the failing half of the last minute
	assert.Len(t, set.left, len(set.breakers))
	set.Leave(now.Add(time.Minute), "another")
	assert.Empty(t, set.breakers)
	assert.Empty(t, set.left)
}

// Jobs of many submitters overlap at three upstreams in every way: one step takes
// a breaker at most one state further, and only to a state that may follow.
func TestOverlappingJobs(t *testing.T) {
	set, err := New(Config{
		Settings: Settings{Failures: 2, Open: time.Millisecond, OpenMax: 4 * time.Millisecond},
		Rand:     testRNG(1),
	})
	require.NoError(t, err)
	type change struct{ from, to State }
	seen := map[change]int{}
	step := func(b *Breaker, do func()) {
		from, epoch := b.state, b.epoch
		do()
		if b.epoch == epoch {
			assert.Equal(t, from, b.state)
			return
		}
		assert.Equal(t, epoch+1, b.epoch)
		seen[change{from, b.state}]++
	}
	type job struct {
		breaker *Breaker
		done    doneFunc
	}
	rng := testRNG(2)
	now := of(t, set, "u:0").now
	var open []job
	for range 32_000 {
		b := set.Join(fmt.Sprintf("u:%d", rng.IntN(3)))
		step(b, func() {
			ready := b.Ready(now)
			done, ok := enter(b, now)
			assert.Equal(t, ready, ok)
			if ok {
				open = append(open, job{b, done})
			}
		})
		if len(open) > rng.IntN(9) {
			i := rng.IntN(len(open))
			j := open[i]
			step(j.breaker, func() { j.done(now, Verdict(rng.IntN(3))) })
			open[i] = open[len(open)-1]
			open = open[:len(open)-1]
		}
		now = now.Add(time.Duration(rng.IntN(200)) * time.Microsecond)
	}
	assert.Len(t, seen, 4)
	for _, c := range []change{{Closed, Open}, {Open, HalfOpen}, {HalfOpen, Open}, {HalfOpen, Closed}} {
		assert.Greater(t, seen[c], 100, "from %v to %v", c.from, c.to)
	}
}
