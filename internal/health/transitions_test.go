package health

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// drawn are the transitions in the package comment, with what causes them.
var drawn = map[[2]state]map[string]bool{
	{closed, open}:     {"failed": true, "broke off": true, "unreachable": true, "refused": true, "check failed": true, "reported": true},
	{open, open}:       {"check failed": true, "reported": true},
	{open, halfOpen}:   {"entered": true},
	{open, closed}:     {"started": true, "reached": true, "check passed": true},
	{halfOpen, closed}: {"started": true, "reached": true, "check passed": true},
	{halfOpen, open}:   {"failed": true, "unreachable": true, "refused": true, "check failed": true},
}

// check tests the invariant of the breaker's state.
func (b *Breaker) check(t *testing.T) {
	switch b.state {
	case closed:
		require.True(t, b.tries.until.IsZero() && b.down.IsZero() && b.tries.trials == 0)
	case open:
		require.True(t, !b.tries.until.IsZero() && b.gate.done == nil && b.tries.trials == 0)
	case halfOpen:
		require.True(t, b.gate.done != nil && b.tries.trials > 0)
	}
}

// Random histories make only the transitions that are drawn, all of them, and keep the invariant of each state.
func TestTransitions(t *testing.T) {
	seen := map[[2]state]map[string]bool{}
	for seed := range uint64(300) {
		rng, p := rand.New(rand.NewPCG(seed, 0)), newPatient(t, seed)
		ended, failures := 0.0, 0.0
		var jobs, streams []Entry
		sick := rng.Float64()
		for range 500 {
			p.sleep(time.Duration(rng.ExpFloat64() * 2e9))
			event, from, epoch := "", p.Breaker.state, p.epoch
			switch k := rng.IntN(20); {
			case k < 7 || len(jobs) == 0:
				e, ok := p.Enter(p.now, rng.IntN(8) == 0)
				if ok || rng.IntN(8) == 0 {
					jobs = append(jobs, e)
				}
				event = "entered"
			case k < 10 && len(streams) > 0:
				i := rng.IntN(len(streams))
				e := streams[i]
				streams = append(streams[:i], streams[i+1:]...)
				if rng.Float64() < sick {
					p.Breaker.Failed(p.now, e, truncated)
					event = "broke off"
				} else {
					p.Ended(e)
					event = "ended"
				}
			case k < 14:
				i := rng.IntN(len(jobs))
				e := jobs[i]
				jobs = append(jobs[:i], jobs[i+1:]...)
				ended++
				switch bad := rng.Float64() < sick; {
				case rng.IntN(6) == 0:
					p.Inconclusive(e)
					event = "unjudged"
				case bad && rng.IntN(8) == 0:
					p.Unreachable(p.now, e)
					event = "unreachable"
				case bad:
					p.Breaker.Failed(p.now, e, failed)
					p.CountFailure()
					failures++
					event = "failed"
				default:
					streams = append(streams, p.Started(p.now, e))
					event = "started"
				}
			case k == 14:
				event = "check passed"
				p.Checked(p.now, interval, nil)
			case k == 15:
				event = "check failed"
				p.Checked(p.now, interval, []error{errors.New("status 503"), ErrRefused}[rng.IntN(2)])
			case k == 16:
				event = "refused"
				p.Refused(p.now)
			case k == 17:
				event = "reached"
				p.Reached(p.now)
			default:
				event = "reported"
				others := float64(rng.IntN(5))
				ended, failures = ended+others, failures+float64(rng.IntN(int(others)+1))
				p.Reported(p.now, ended, failures)
			}
			p.check(t)
			if from == p.Breaker.state && epoch == p.epoch {
				continue
			}
			change := [2]state{from, p.Breaker.state}
			require.True(t, drawn[change][event], "seed %d: %v by %q", seed, change, event)
			if seen[change] == nil {
				seen[change] = map[string]bool{}
			}
			seen[change][event] = true
		}
	}
	assert.Equal(t, drawn, seen)
}
