package breaker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
)

// oracle is the breaker as its documentation tells it, with no gobreaker.
type oracle struct {
	state    State
	epoch    int // counts transitions: a verdict counts in its own epoch only
	failures int
	until    time.Time // open: may be tried; half open: the probe is overdue
	probe    int       // the ticket under way as the probe; 0 is none
	closedAt time.Time // of the last time that it closed
	open     time.Duration
}

func (o *oracle) enter(now time.Time, ticket int) bool {
	switch o.state {
	case Open:
		if now.Before(o.until) {
			return false
		}
		o.turn(HalfOpen)
	case HalfOpen:
		if o.probe != 0 && now.Before(o.until) {
			return false
		}
	case Closed:
		return true
	}
	o.probe, o.until = ticket, now.Add(time.Minute)
	return true
}

// done returns whether the breaker opened, for how long without jitter.
func (o *oracle) done(now time.Time, ticket, epoch int, v pool.Verdict) (time.Duration, bool) {
	if epoch != o.epoch {
		return 0, false
	}
	switch {
	case v == pool.Unknown && o.probe == ticket:
		o.probe = 0
	case v == pool.Healthy && o.state == HalfOpen:
		o.turn(Closed)
		o.closedAt = now
	case v == pool.Healthy:
		o.failures = 0
	case v == pool.Unhealthy:
		o.failures++
		if o.state == Closed && o.failures < 5 {
			return 0, false
		}
		o.open = min(2*o.open, time.Minute)
		if o.open == 0 || o.state == Closed && now.Sub(o.closedAt) >= time.Minute {
			o.open = 5 * time.Second
		}
		o.turn(Open)
		return o.open, true
	}
	return 0, false
}

func (o *oracle) turn(to State) {
	o.state = to
	o.epoch++
	o.failures, o.probe = 0, 0
}

func TestAgainstTheOracle(t *testing.T) {
	var visits [3]int
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) { againstOracle(t, seed, &visits) })
	}
	for state, n := range visits {
		require.Greater(t, n, 1000, "%v was hardly tried", State(state))
	}
}

func againstOracle(t *testing.T, seed uint64, visits *[3]int) {
	type job struct {
		done   doneFunc
		ticket int
		epoch  int
		ended  bool
	}
	rng := testRNG(seed)
	g := testGate(t, Config{})
	o := &oracle{}
	var jobs []*job
	sick := 0.5
	for step := range 1000 {
		switch action := rng.IntN(100); {
		case action < 5:
			sick = rng.Float64()
		case action < 45:
			ready := g.Ready(time.Now())
			done, ok := g.Enter(time.Now())
			require.Equal(t, ready, ok, "seed %d, step %d", seed, step)
			require.Equal(t, o.enter(time.Now(), step+1), ok, "seed %d, step %d", seed, step)
			if ok {
				jobs = append(jobs, &job{done: done, ticket: step + 1, epoch: o.epoch})
			}
		case action < 85 && len(jobs) > 0:
			// The newest are likelier than the old, and some end twice.
			j := jobs[len(jobs)-1-min(rng.IntN(len(jobs)), rng.IntN(len(jobs)))]
			v := pool.Healthy
			if rng.Float64() < sick {
				v = pool.Unhealthy
			}
			if rng.IntN(5) == 0 {
				v = pool.Unknown
			}
			j.done(time.Now(), v)
			if j.ended {
				break
			}
			j.ended = true
			if open, opened := o.done(time.Now(), j.ticket, j.epoch, v); opened {
				o.until = g.status().Until // the jitter is not the oracle's to know
				require.InEpsilon(t, open.Seconds(), time.Until(o.until).Seconds(), 0.2, "seed %d, step %d", seed, step)
			}
		case rng.IntN(3) == 0:
			time.Sleep(time.Duration(rng.IntN(70)) * time.Second)
		default:
			time.Sleep(time.Duration(rng.IntN(1000)) * time.Millisecond)
		}
		require.Equal(t, o.state, g.status().State, "seed %d, step %d", seed, step)
		visits[o.state]++
	}
}
