package dispatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

// asked is a job that upstream 1 is asked to withdraw a second after the start: it drains, and jobs wait there.
func asked(t *testing.T) (*fixture, Grant) {
	f := newFixture(t, 4, nil)
	f.Pool().SetSettings(pool.Settings{Policy: selection.LeastInFlight{}, Interval: 5 * time.Second, Breaker: health.Default(), Withdraw: true})
	g := f.at(start, 1)
	f.Pool().Drain(address(1), true)
	now := start.Add(time.Second)
	for i := range 4 {
		f.load(now, i, map[bool]float64{true: 9, false: 0}[i == 1])
	}
	require.Equal(t, []Withdrawal{{g.Job, address(1), g.Assignment.Number()}}, f.Withdrawals(now))
	require.Equal(t, 2, f.Pool().InFlight(), "it counts at both")
	return f, g
}

// A job that its upstream has withdrawn goes to the claimed upstream. Any other end of the attempt cancels the move, and
// counts as it would have.
func TestAJobThatIsToBeWithdrawn(t *testing.T) {
	now := start.Add(time.Second)
	for name, c := range map[string]struct {
		failure *Failure // nil: the upstream refuses
		claimed bool     // the next attempt is at the claimed upstream
		retries retries  // then
	}{
		"withdrawn":                {&Failure{Outcome: pool.Moved, Repeatable: true}, true, retries{}},
		"the upstream refuses":     {nil, false, retries{}},
		"the connection was lost":  {&Failure{Outcome: pool.NoAnswer, Progress: Begun, Repeatable: true}, false, retries{attempts: 1, spent: true}},
		"it was refused for load":  {&Failure{Outcome: pool.NotStarted, Progress: Responded, Repeatable: true}, false, retries{attempts: 1}},
		"the submitter is gone":    {&Failure{Outcome: pool.Gone}, false, retries{attempts: 1}},
		"a response was cut short": {&Failure{Outcome: pool.Truncated, Progress: Responded, Repeatable: true}, false, retries{attempts: 1}},
	} {
		f, g := asked(t)
		to := g.Job.to
		if c.failure == nil {
			f.CancelWithdrawal(now, g.Job)
			g.Assignment.Done(now, pool.Answered)
		} else if next := f.fail(now, g, *c.failure); next.Again {
			a := f.claim(now, g.Job).Assignment
			assert.Equal(t, c.claimed, a == to, name)
			a.Done(now, pool.Answered)
		}
		got := g.Job.retries
		got.connect = 0
		assert.Equal(t, c.retries, got, name)
		assert.Zero(t, f.Pool().InFlight(), name)
	}
}

// An upstream may withdraw a job after the sidecar has stopped waiting for it: the job goes elsewhere, within the retry budget.
// No upstream is asked again for the same job.
func TestAWithdrawalThatCameLate(t *testing.T) {
	f, g := asked(t)
	now := start.Add(time.Second)
	f.CancelWithdrawal(now, g.Job)
	assert.Empty(t, f.Withdrawals(now))
	require.True(t, f.fail(now, g, Failure{Outcome: pool.Moved, Repeatable: true}).Again)
	next := f.claim(now, g.Job)
	assert.NotEqual(t, address(1), next.Assignment.Address)
	assert.Equal(t, 1, g.Job.retries.attempts)
	next.Assignment.Done(now, pool.Answered)
	assert.Zero(t, f.Pool().InFlight())
}
