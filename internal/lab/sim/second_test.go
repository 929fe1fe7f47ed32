package sim

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/trace"
)

// Jobs that wait at a server that hangs are run elsewhere, once it is suspect.
func TestJobsLeaveAServerThatHangs(t *testing.T) {
	for _, moves := range []bool{false, true} {
		cfg := setup(t, "least-in-flight", "none", 4, 2)
		cfg.Sidecars.SecondThoughts.Suspect = moves
		cfg.Sidecars.Interval = 5 * time.Second
		cfg.Fleet.Faults = fault(hung, func(f *Fault) { f.At = 10 * time.Second })
		var jobs []trace.Job
		for i := range 120 {
			jobs = append(jobs, trace.Job{Offset: float64(i) / 4, Operators: 1, Timeouts: trace.Timeouts{Queue: 60}})
		}
		expired, moved := 0, 0
		for _, r := range played(t, cfg, jobs...) {
			if r.Outcome == Expired {
				expired++
				continue
			}
			require.Contains(t, []Outcome{Done, Overrun}, r.Outcome)
			if moved += r.Attempts - 1; r.Attempts > 1 {
				assert.Equal(t, Done, r.Outcome)
				assert.Less(t, r.Wait, 20*time.Second)
			}
		}
		assert.Equal(t, moves, expired == 0, "%d expired", expired)
		assert.Equal(t, moves, moved > 0, "%d moved", moved)
	}
}

// unevenJobs are 600 jobs of eight projects and eight submitters, ten a second, and
// how long they take together, in seconds.
func unevenJobs() (jobs []trace.Job, work float64) {
	rng := rand.New(rand.NewPCG(5, 5))
	for i := range 600 {
		j := trace.Job{
			Offset: float64(i) / 10, Submitter: int64(rng.IntN(8)), Project: trace.Project(rune('a' + rng.IntN(8))),
			Operators: 0.1 + 2*rng.ExpFloat64()*rng.Float64(), Timeouts: trace.Timeouts{Queue: 1e6},
		}
		jobs = append(jobs, j)
		work += j.Operators
	}
	return jobs, work
}

// Late jobs move to cores that are free. Where servers tell when jobs begin, no work is done
// twice.
func TestLateJobsMove(t *testing.T) {
	cfg := setup(t, "expected", "none", 4, 2)
	cfg.Sidecars.Count, cfg.Sidecars.Interval = 8, 2*time.Second
	jobs, work := unevenJobs()
	run := func(told, blind bool, late time.Duration) (moved int, busy float64) {
		cfg.Sidecars.Begun, cfg.Sidecars.Blind, cfg.Sidecars.SecondThoughts.Late = told, blind, late
		list := trace.List(jobs)
		cfg.Source = &list
		cfg.Observe = func(r *Result) {
			assert.Equal(t, Done, r.Outcome)
			assert.LessOrEqual(t, r.Attempts, 2, "a job moves once")
			moved += r.Attempts - 1
		}
		totals, err := Run(t.Context(), cfg)
		require.NoError(t, err)
		require.Equal(t, len(jobs), totals.Ended)
		require.Zero(t, totals.InFlight)
		return moved, totals.CoreSeconds
	}
	const late = 200 * time.Millisecond
	moved, _ := run(true, false, 0)
	assert.Zero(t, moved)
	moved, _ = run(false, false, late)
	assert.Zero(t, moved, "nobody knows which jobs wait")
	moved, busy := run(true, false, late)
	assert.Greater(t, moved, 5)
	assert.InDelta(t, work, busy, 1e-6)
	moved, busy = run(false, true, late)
	assert.Greater(t, moved, 5)
	assert.Greater(t, busy, work+1, "work was done twice")
}

// A copy of a late job runs beside it where a core is free. The first answer ends the
// other, and every job ends once.
func TestLateJobsAreDoubled(t *testing.T) {
	cfg := setup(t, "expected", "none", 4, 2)
	cfg.Sidecars.Count, cfg.Sidecars.Interval = 8, 2*time.Second
	cfg.Sidecars.Begun, cfg.Sidecars.Copies, cfg.Sidecars.SecondThoughts.Late = true, true, 200*time.Millisecond
	jobs, work := unevenJobs()
	list := trace.List(jobs)
	cfg.Source = &list
	ended, won := map[int64]int{}, 0
	cfg.Observe = func(r *Result) {
		assert.Equal(t, Done, r.Outcome)
		ended[r.Number]++
		won += r.Attempts - 1
	}
	totals, err := Run(t.Context(), cfg)
	require.NoError(t, err)
	assert.Len(t, ended, len(jobs))
	assert.Equal(t, len(jobs), totals.Ended)
	assert.Zero(t, totals.InFlight)
	assert.Greater(t, won, 5, "copies were first")
	assert.Greater(t, totals.CoreSeconds, work+0.1, "work was done twice")
}
