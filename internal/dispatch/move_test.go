package dispatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/internal/pool"
)

// withdrawer makes an attempt that can be withdrawn; the test ends it.
type withdrawer struct{}

func (withdrawer) Withdraw() bool { return true }

// hang lets polls of upstream i fail until it is suspect; the others report.
func (f *fixture) hang(now time.Time, i, upstreams int) {
	for k := range upstreams {
		if k != i {
			f.load(now, k, 0)
		}
	}
	f.Pool().ReportFailed(now, address(i), health.ErrNoResponse)
	f.Pool().ReportFailed(now.Add(time.Second), address(i), health.ErrNoResponse)
}

// at claims upstream i for a job that can be withdrawn.
func (f *fixture) at(now time.Time, i int) Grant {
	f.t.Helper()
	for k := range 4 {
		f.load(now.Add(time.Duration(k)), k, map[bool]float64{true: 0, false: 1000}[k == i])
	}
	j := f.Begin(Request{Withdraw: withdrawer{}})
	g := f.claim(now, j)
	require.Equal(f.t, address(i), g.Assignment.Address)
	return g
}

func TestAMovedJobArrivesAtItsNewPlace(t *testing.T) {
	f := newFixture(t, 4, nil)
	g := f.at(start, 1)
	now := start.Add(time.Second)
	f.hang(now, 1, 4)
	moved := f.Reconsider(now)
	require.Len(t, moved, 1)
	assert.Same(t, g.Job, moved[0])
	assert.Equal(t, 2, f.Pool().InFlight())

	require.Equal(t, Next{Again: true, Claimed: true}, f.fail(now, g, Failure{Outcome: pool.Moved, Progress: Begun}))
	next := f.claim(now, g.Job)
	assert.NotEqual(t, address(1), next.Assignment.Address)
	assert.Equal(t, time.Second, next.ConnectTimeout)
	tried := g.Job.Tried()
	assert.Equal(t, []any{2, true, true}, []any{tried.Len(), tried.Has(address(1)), tried.Has(next.Assignment.Address)}, "where it does not go again")
	assert.Equal(t, 1, f.Pool().InFlight())

	for i := range 4 { // it is not moved twice
		f.hang(now.Add(time.Duration(i+1)*time.Minute), i, 4)
		require.Empty(t, f.Reconsider(now.Add(time.Duration(i+1)*time.Minute)))
	}
	require.True(t, f.fail(now, next, Failure{Outcome: pool.NotStarted}).Again)
	last := f.claim(now, g.Job)
	require.Equal(t, Next{}, f.fail(now, last, Failure{Outcome: pool.NotStarted, Progress: Responded}), "the move was one of three attempts")
	assert.Zero(t, f.Pool().InFlight())
}

// A move that is cancelled counts neither as an attempt nor as the retry of a job that an upstream may have begun.
func TestACancelledMoveDoesNotCount(t *testing.T) {
	for name, failure := range map[string]Failure{
		"it was refused for load":   {Outcome: pool.NotStarted, Progress: Responded},
		"its status is in retry.on": {Outcome: pool.Failed, Progress: Responded},
		"its connection was lost":   {Outcome: pool.NoAnswer, Progress: Begun},
	} {
		f := newFixture(t, 4, func(c *Config) { c.Retry.Attempts = 2 })
		g := f.at(start, 1)
		f.hang(start.Add(time.Second), 1, 4)
		require.Len(t, f.Reconsider(start), 1)
		f.CancelMove(start, g.Job)
		assert.True(t, f.fail(start, g, failure).Again, name)
	}
}

func TestBoundsOnMoves(t *testing.T) {
	for name, c := range map[string]struct {
		change func(c *Config)
		want   int // of 40 jobs that wait at the upstream that hangs, and 100 in all
	}{
		"the retries' share": {func(c *Config) { c.Retry.Budget = 0.3 }, 30},
		"the retries' floor": {func(c *Config) { c.Retry.Budget = 0.01 }, 3},
		"no second attempts": {func(c *Config) { c.Retry.Attempts = 1 }, 0},
		"a second attempt":   {func(c *Config) { c.Retry.Attempts = 2 }, 40},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 4, c.change)
			for range 60 {
				f.claim(start, f.Begin(Request{})).Assignment.Done(start, pool.Answered)
			}
			var there []*Job
			for range 40 {
				there = append(there, f.at(start, 1).Job)
			}
			f.hang(start.Add(time.Second), 1, 4)
			moved := f.Reconsider(start)
			require.Len(t, moved, c.want)
			for i, j := range moved {
				require.Same(t, there[i], j, "they leave in the order in which they came")
			}
		})
	}
}

// A job that an upstream may have begun is run a second time, but not a third time.
func TestAJobThatMayHaveBegunMovesOnce(t *testing.T) {
	f := newFixture(t, 4, nil)
	g := f.at(start, 1)
	require.True(t, f.fail(start, g, Failure{Outcome: pool.NoAnswer, Progress: Begun}).Again)
	for i := range 4 {
		f.load(start.Add(time.Millisecond), i, 0)
	}
	second := f.claim(start, g.Job)
	f.claim(start, f.Begin(Request{Among: []string{second.Assignment.Address}})) // it cannot be withdrawn
	for i := range 4 {
		if address(i) == second.Assignment.Address {
			f.hang(start.Add(time.Second), i, 4)
		}
	}
	require.Empty(t, f.Reconsider(start))
}

// asked is a job that upstream 1 is asked to withdraw a second after the start: it drains, and jobs wait there.
func asked(t *testing.T) (*fixture, Grant) {
	f := newFixtureOver(t, 4, pool.Settings{Withdraw: true}, nil)
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

// A job that its upstream did not withdraw is still moved when the upstream hangs.
func TestAJobThatWasNotWithdrawnCanMove(t *testing.T) {
	f, g := asked(t)
	now := start.Add(time.Second)
	f.CancelWithdrawal(now, g.Job)
	f.hang(now, 1, 4)
	assert.Equal(t, []*Job{g.Job}, f.Reconsider(now.Add(time.Second)))
}

// The time that a moved job has waited at its first upstream does not count as queue time, if the new one refuses the connection.
func TestAMovedJobWhoseNewUpstreamRefuses(t *testing.T) {
	f := newFixture(t, 4, nil)
	g := f.at(start, 1)
	now := start.Add(time.Hour)
	f.hang(now, 1, 4)
	require.Len(t, f.Reconsider(now), 1)
	require.True(t, f.fail(now, g, Failure{Outcome: pool.Moved, Progress: Begun}).Again)
	next := f.claim(now, g.Job)
	assert.True(t, f.fail(now.Add(time.Millisecond), next, Failure{Outcome: pool.Refused, Progress: Unsent}).Again)
}
