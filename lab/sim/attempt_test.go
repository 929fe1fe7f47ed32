package sim

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/lab/trace"
)

// A simulated job has the same timeouts as with a real sidecar and server: the server aborts a
// job that runs for too long, an attempt without a first byte in time is followed by another
// one, and a response that takes too long is truncated.
func TestTimeoutsOfAJob(t *testing.T) {
	for name, c := range map[string]struct {
		upstreams int
		job       trace.Job
		outcome   Outcome
		first     time.Duration // negative without a response
		ends      time.Duration
		attempts  int
		got       intake.Completeness
	}{
		"in time": {
			2, trace.Job{Operators: 9, Output: 2, Timeouts: trace.Timeouts{Queue: 5, Evaluate: 10, Stream: 3}},
			Done, 9 * time.Second, 11 * time.Second, 1, intake.Complete,
		},
		"the server aborts a job that runs for too long": {
			2, trace.Job{Operators: 100, Timeouts: trace.Timeouts{Queue: 5, Evaluate: 10, Stream: 3}},
			Overrun, -1, 10 * time.Second, 1, intake.Absent,
		},
		"two attempts, each of the default time": {
			2, trace.Job{Operators: 1000}, Overrun, -1, 10 * time.Minute, 2, intake.Absent,
		},
		"one attempt, because there is one upstream": {
			1, trace.Job{Operators: 1000}, Overrun, -1, 5 * time.Minute, 1, intake.Absent,
		},
		"the response is truncated": {
			2, trace.Job{Operators: 2, Output: 100, Timeouts: trace.Timeouts{Stream: 10}},
			Overrun, 2 * time.Second, 12 * time.Second, 1, intake.Partial,
		},
		"a response without a timeout is not": {
			2, trace.Job{Load: 1, Operators: 2, Output: 10_000, Project: "a", Timeouts: trace.Timeouts{Queue: 5}},
			Done, 3 * time.Second, 10_003 * time.Second, 1, intake.Complete,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := played(t, setup(t, "least-in-flight", "none", c.upstreams, 4), c.job)[1]
			assert.Equal(t, c.outcome, got.Outcome)
			assert.Equal(t, c.ends, got.Arrived+got.Wait+got.Run)
			assert.Equal(t, c.attempts, got.Attempts)
			assert.Equal(t, c.got, got.Completeness)
			assert.Equal(t, []time.Duration{c.first, c.ends}, []time.Duration{got.FirstByte, got.LastByte})
		})
	}
	cfg := setup(t, "least-in-flight", "none", 1, 4)
	cfg.Fleet.Fault = fault(failing, func(*Fault) {})
	got := played(t, cfg, trace.Job{Operators: 9, Timeouts: trace.Timeouts{Queue: 30}})[1]
	assert.Equal(t, Failed, got.Outcome)
	assert.Equal(t, intake.Complete, got.Completeness, "an error is a response")
	assert.Equal(t, got.LastByte, got.FirstByte)
	assert.Equal(t, 30*time.Second, got.Wait, "a short time to the failure does not count as a fast response")
}

// Three of four servers do not respond, and the sidecar has no health checks. Without breakers, jobs are sent to the dead
// servers again and again. After five failures in a row the breakers open, and then only probes are sent there; where timeouts
// are counted apart from other failures, after the first.
func TestBreakersKeepJobsFromDeadServers(t *testing.T) {
	failures := func(change func(*Sidecars)) (failed int) {
		cfg := setup(t, "random", "none", 4, 16)
		cfg.Source = poisson{rng: rand.New(rand.NewPCG(3, 1)), rate: 20, work: 0.2, n: 5000}.all
		cfg.Observe = func(r *Result) {
			failed += r.Attempts
			if r.Outcome == Done {
				failed--
			}
		}
		change(&cfg.Sidecars)
		w := newWorld(cfg)
		for _, s := range w.servers[:3] {
			s.up = false
		}
		require.NoError(t, w.loop(t.Context()))
		require.Equal(t, 5000, w.count().Ended)
		return failed
	}
	without := failures(func(c *Sidecars) { c.CountTimeouts, c.Breaker.Failures, c.Budget = true, 1_000_000, 1 })
	with := failures(func(c *Sidecars) { c.CountTimeouts = true })
	first := failures(func(*Sidecars) {})
	assert.Greater(t, without, 5000)
	assert.Less(t, with, 150)
	assert.GreaterOrEqual(t, with, 15)
	assert.Less(t, first, with)
}

// The data that a job needs besides its project's is fetched after it, once for all jobs, and later jobs
// are sent where it is cached.
func TestNeedsAreFetchedOnce(t *testing.T) {
	need := trace.Need{Name: "catalogue", Load: 3, Bytes: 1 << 20}
	for _, oneKey := range []bool{false, true} {
		cfg := setup(t, "dynamic", "none", 1, 4)
		cfg.Sidecars.OneKey = oneKey
		results := played(t, cfg,
			trace.Job{Project: "1", Load: 2, Operators: 1, Bytes: 1, Needs: []trace.Need{need}},
			trace.Job{Offset: 10, Project: "2", Load: 2, Operators: 1, Bytes: 1, Needs: []trace.Need{need}},
			trace.Job{Offset: 20, Project: "2", Load: 2, Operators: 1, Bytes: 1, Needs: []trace.Need{need}})
		assert.Equal(t, []time.Duration{6 * time.Second, 3 * time.Second, time.Second},
			[]time.Duration{results[1].Run, results[2].Run, results[3].Run})
	}
	results := played(t, setup(t, "expected", "none", 4, 4),
		trace.Job{Project: "1", Load: 2, Operators: 1, Bytes: 1 << 20, Needs: []trace.Need{need}},
		trace.Job{Offset: 40, Project: "3", Needs: []trace.Need{{Name: "1", Load: 2, Bytes: 1 << 20}, need}, Operators: 1})
	assert.Equal(t, results[1].Server, results[2].Server, "all but its own is there")
}

// Jobs that wait at a hanging server are run elsewhere, when it has become a suspect.
func TestJobsLeaveAServerThatHangs(t *testing.T) {
	for _, moves := range []bool{false, true} {
		cfg := setup(t, "least-in-flight", "none", 4, 2)
		if !moves {
			cfg.Sidecars.Attempts = 1
		}
		cfg.Sidecars.Interval = 5 * time.Second
		cfg.Fleet.Fault = fault(hung, func(f *Fault) { f.At = 10 * time.Second })
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
