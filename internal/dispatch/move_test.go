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

	require.Equal(t, Next{Again: true}, f.fail(now, g, Failure{Outcome: pool.Moved, Progress: Begun}))
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

// An attempt that ends before it is withdrawn keeps its result. If it failed, the job goes to the claimed upstream.
func TestAMoveThatCameTooLate(t *testing.T) {
	for name, c := range map[string]struct {
		end   func(f *fixture, now time.Time, g Grant) Next
		again bool
	}{
		"its response has begun": {func(f *fixture, now time.Time, g Grant) Next {
			f.CancelMove(now, g.Job)
			f.CancelMove(now, g.Job)
			return Next{}
		}, false},
		"it was refused for load": {func(f *fixture, now time.Time, g Grant) Next {
			return f.fail(now, g, Failure{Outcome: pool.NotStarted, Progress: Responded})
		}, true},
		"the submitter is gone": {func(f *fixture, now time.Time, g Grant) Next { return f.fail(now, g, Failure{Outcome: pool.Gone}) }, false},
		"a response was cut": {func(f *fixture, now time.Time, g Grant) Next {
			return f.fail(now, g, Failure{Outcome: pool.Truncated, Progress: Responded})
		}, false},
		"its body cannot be sent again": {func(f *fixture, now time.Time, g Grant) Next {
			g.Assignment.Done(now, pool.NoAnswer)
			return f.Failed(now, g.Job, Failure{Outcome: pool.NoAnswer, Progress: Begun})
		}, false},
		"the connection was lost": {func(f *fixture, now time.Time, g Grant) Next {
			return f.fail(now, g, Failure{Outcome: pool.NoAnswer, Progress: Begun})
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 4, nil)
			g := f.at(start, 1)
			f.hang(start.Add(time.Second), 1, 4)
			require.Len(t, f.Reconsider(start), 1)
			require.Equal(t, c.again, c.end(f, start, g).Again)
			if c.again {
				again := f.claim(start, g.Job).Assignment
				require.Equal(t, 1, f.Pool().InFlight())
				again.Done(start, pool.Answered)
			}
			g.Assignment.Done(start, pool.Answered)
			assert.Zero(t, f.Pool().InFlight())
		})
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
