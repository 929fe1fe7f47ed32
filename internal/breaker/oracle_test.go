package breaker

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sony/gobreaker/v2"
	"github.com/stretchr/testify/require"
)

// The breaker against sony/gobreaker, over random histories: the same states,
// the same counting, the same verdicts too old to count. An open breaker is left
// in peace, because the open times differ: gobreaker's is the shortest there is,
// so that it is ready whenever the breaker is. gobreaker reads the clock by
// itself, hence the bubble.
func TestAgainstGobreaker(t *testing.T) {
	var visits [3]int
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) { againstGobreaker(t, seed, &visits) })
	}
	for state, n := range visits {
		require.Greater(t, n, 500, "%v was hardly tried", State(state))
	}
}

var errUnhealthy, errUnknown = errors.New("unhealthy"), errors.New("unknown")

func againstGobreaker(t *testing.T, seed uint64, visits *[3]int) {
	rng := testRNG(seed)
	f := newFixture(t, Default())
	var state gobreaker.State // its own State() may change it
	theirs := gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests:   1,
		Timeout:       time.Nanosecond,
		ReadyToTrip:   func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= 5 },
		IsExcluded:    func(err error) bool { return errors.Is(err, errUnknown) },
		OnStateChange: func(_ string, _, to gobreaker.State) { state = to },
	})
	type job struct {
		done   doneFunc
		report func(error)
	}
	var jobs []job
	sick := 0.5
	for step := range 1000 {
		f.now = time.Now()
		switch action := rng.IntN(100); {
		case action < 5:
			sick = rng.Float64()
		case action < 45:
			// gobreaker waits for its probe without end, so the probe ends first.
			if f.state() == HalfOpen && f.Ready(f.now) {
				for _, j := range jobs {
					j.report(errUnknown)
				}
				jobs = nil
				f.Tell(f.now, &Entry{epoch: f.epoch, probe: f.probes}, Unknown)
			}
			done, ok := f.Enter(f.now)
			if !ok && f.state() == Open {
				break
			}
			report, err := theirs.Allow()
			require.Equal(t, ok, err == nil, "seed %d, step %d: %v", seed, step, err)
			if ok {
				jobs = append(jobs, job{done, report})
			}
		case action < 85 && len(jobs) > 0 && f.state() != Open:
			i := len(jobs) - 1 - min(rng.IntN(len(jobs)), rng.IntN(len(jobs)))
			v, err := Healthy, error(nil)
			if rng.Float64() < sick {
				v, err = Unhealthy, errUnhealthy
			}
			if rng.IntN(5) == 0 {
				v, err = Unknown, errUnknown
			}
			jobs[i].done(f.now, v)
			jobs[i].report(err)
			jobs = append(jobs[:i], jobs[i+1:]...)
		default:
			time.Sleep(time.Duration(1+rng.IntN(10_000)) * time.Millisecond)
		}
		require.Equal(t, state.String(), f.state().String(), "seed %d, step %d", seed, step)
		visits[f.state()]++
	}
}

// oracle is the breaker as its documentation tells it, open times included.
type oracle struct {
	state    State
	epoch    int // counts transitions: a verdict counts in its own epoch only
	failures int
	until    time.Time // open: may be tried; half open: the probe is overdue
	probe    int       // the ticket of the job under way as the probe; 0 is none
	closedAt time.Time // of the last time that it closed
	open     time.Duration
}

func (o *oracle) enter(now time.Time, ticket int) bool {
	switch o.state {
	case Open:
		if now.Before(o.until) {
			return false
		}
		o.enters(HalfOpen)
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
func (o *oracle) done(now time.Time, ticket, epoch int, v Verdict) (time.Duration, bool) {
	if epoch != o.epoch {
		return 0, false
	}
	switch {
	case v == Unknown && o.probe == ticket:
		o.probe = 0
	case v == Healthy && o.state == HalfOpen:
		o.enters(Closed)
		o.closedAt = now
	case v == Healthy:
		o.failures = 0
	case v == Unhealthy:
		o.failures++
		if o.state == Closed && o.failures < 5 {
			return 0, false
		}
		o.open = min(2*o.open, time.Minute)
		if o.open == 0 || o.state == Closed && now.Sub(o.closedAt) >= time.Minute {
			o.open = 5 * time.Second
		}
		o.enters(Open)
		return o.open, true
	}
	return 0, false
}

func (o *oracle) enters(to State) {
	o.state = to
	o.epoch++
	o.failures, o.probe = 0, 0
}

func TestAgainstTheOracle(t *testing.T) {
	var visits [3]int
	for seed := range uint64(100) {
		againstOracle(t, seed, &visits)
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
	f := newFixture(t, Default())
	o := &oracle{}
	var jobs []*job
	sick := 0.5
	for step := range 1000 {
		switch action := rng.IntN(100); {
		case action < 5:
			sick = rng.Float64()
		case action < 45:
			ready := f.Ready(f.now)
			done, ok := f.Enter(f.now)
			require.Equal(t, ready, ok, "seed %d, step %d", seed, step)
			require.Equal(t, o.enter(f.now, step+1), ok, "seed %d, step %d", seed, step)
			if ok {
				jobs = append(jobs, &job{done: done, ticket: step + 1, epoch: o.epoch})
			}
		case action < 85 && len(jobs) > 0:
			// The newest are likelier than the old, and some end twice.
			j := jobs[len(jobs)-1-min(rng.IntN(len(jobs)), rng.IntN(len(jobs)))]
			v := Healthy
			if rng.Float64() < sick {
				v = Unhealthy
			}
			if rng.IntN(5) == 0 {
				v = Unknown
			}
			j.done(f.now, v)
			if j.ended {
				break
			}
			j.ended = true
			if open, opened := o.done(f.now, j.ticket, j.epoch, v); opened {
				o.until = f.Status().Until // the jitter is not the oracle's to know
				require.InEpsilon(t, open.Seconds(), o.until.Sub(f.now).Seconds(), 0.2, "seed %d, step %d", seed, step)
			}
		case rng.IntN(3) == 0:
			f.sleep(time.Duration(rng.IntN(70)) * time.Second)
		default:
			f.sleep(time.Duration(rng.IntN(1000)) * time.Millisecond)
		}
		require.Equal(t, o.state, f.state(), "seed %d, step %d", seed, step)
		visits[o.state]++
	}
}
