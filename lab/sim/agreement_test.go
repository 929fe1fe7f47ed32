package sim_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/lab/rivals"
	"example.org/pilotfish/lab/sim"
	"example.org/pilotfish/lab/trace"
	"example.org/pilotfish/pkg/selection"
)

// The small cluster that is run with real sidecars and simulated.
const (
	upstreams = 4
	cores     = 4 // of each server
	sidecars  = 3
	interval  = 5 * time.Second // between reports
)

// officeJobs returns four minutes of jobs that keep two thirds of the cores busy: bursts that run a project's rules for
// several channels, and people's jobs that wait for each other. Their sizes are not long-tailed, so no mean depends on a
// few jobs.
func officeJobs() (jobs []trace.Job) {
	rng := rand.New(rand.NewPCG(9, 9))
	around := func(median float64) float64 {
		return math.Round(1e3*median*math.Exp(0.8*rng.NormFloat64())) / 1e3
	}
	type project struct{ load, shared, work, view float64 }
	projects := make([]project, 60)
	for i := range projects {
		projects[i] = project{around(1), around(0.7), around(1.4), around(1)}
	}
	for len(jobs) < 1000 {
		i := rng.IntN(len(projects))
		p, at := projects[i], 0.24*float64(len(jobs))
		job := trace.Job{
			Project: trace.Project(strconv.Itoa(i)), Version: 1, Load: p.load, Bytes: 100, // the size of the feeds that the servers list
			// No job reaches a timeout: other tests cover that.
			Timeouts: trace.Timeouts{Queue: 600, Evaluate: 1800, Stream: 3600},
		}
		if rng.IntN(5) == 0 {
			job.Priority, job.Operators, job.Output, job.Submitter = selection.High, 0.8*p.view, 0.2*p.view, int64(i%12)
			job.Offset = at + 0.1
			jobs = append(jobs, job)
			job.After, job.Offset = trace.Line(len(jobs)), at+0.15
			jobs = append(jobs, job)
			continue
		}
		for channel := range 1 + rng.IntN(6) {
			job.Shared, job.SharedRules, job.Operators, job.Output = "s", p.shared, 0.8*p.work, 0.2*p.work
			job.Offset, job.Submitter = at+0.2*float64(channel)/6, int64(rng.IntN(12))
			jobs = append(jobs, job)
		}
	}
	return jobs
}

// seen is the result of a job; times are in seconds.
type seen struct {
	upstream        string
	wait, execution float64
	fetched         bool
}

// simulate runs jobs in the simulator.
func simulate(t *testing.T, jobs []trace.Job, policy string, seed uint64) map[trace.Line]seen {
	t.Helper()
	results := map[trace.Line]seen{}
	c := sim.Config{Source: slices.Values(jobs), Seed: seed, Fleet: sim.DefaultFleet(), Sidecars: sim.DefaultSidecars()}
	c.Fleet.Upstreams, c.Fleet.Cores, c.Fleet.Order = upstreams, cores, "expected"
	c.Sidecars.Count, c.Sidecars.Interval, c.Sidecars.Hints, c.Sidecars.Untold = sidecars, interval, true, true
	var err error
	c.Policy, err = rivals.New(policy)
	require.NoError(t, err)
	c.Detector, err = overload.Settings{Policy: "none", Stalled: 100, Reset: 0.8}.Detector()
	require.NoError(t, err)
	c.Observe = func(r *sim.Result) {
		require.Equal(t, sim.Done, r.Outcome)
		results[trace.Line(r.Number)] = seen{address(r.Server), r.Wait.Seconds(), r.Run.Seconds(), r.Fetched}
	}
	_, err = sim.Run(t.Context(), c)
	require.NoError(t, err)
	return results
}

// live runs jobs through real sidecars and reference servers, in fake time.
func live(t *testing.T, jobs []trace.Job, policy string, seed uint64) (results map[trace.Line]seen) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := startCluster(t, jobs, policy, seed)
		defer c.stop()
		results = c.replay(t, jobs)
	})
	return results
}

// With a policy that uses only a job's project, every job goes to the same server in both. So
// its wait, duration and fetches must be equal in both.
func TestAgreesWithRealSidecarsJobByJob(t *testing.T) {
	jobs := officeJobs()
	simulated := simulate(t, jobs, "baseline", 1)
	played := live(t, jobs, "baseline", 1)
	require.Len(t, played, len(jobs))
	for line, want := range simulated {
		got := played[line]
		require.Equal(t, want.upstream, got.upstream, "line %d", line)
		require.Equal(t, want.fetched, got.fetched, "line %d", line)
		require.InDelta(t, want.wait, got.wait, 1e-3, "line %d: wait in seconds", line)
		require.InDelta(t, want.execution, got.execution, 1e-3, "line %d: execution in seconds", line)
	}
}

// A policy that learns from reports, hints and its own jobs polls at random times and
// draws among equals. So it agrees in its means over several seeds. Measured
// over 12 seeds, the standard deviation of one run's mean wait is 16 %, and that of
// its fetches 2 %. And these servers respond when all is computed, the modelled
// ones when the output begins: there are 2 to 4 % fewer fetches live.
func TestAgreesWithRealSidecarsInTheMean(t *testing.T) {
	jobs := officeJobs()
	const lives, simulations = 3, 9
	var played, simulated, baseline means
	for seed := range uint64(lives) {
		played.add(live(t, jobs, "expected", seed), lives)
	}
	for seed := range uint64(simulations) {
		simulated.add(simulate(t, jobs, "expected", seed), simulations)
	}
	t.Logf("live %+v, simulated %+v", played, simulated)
	assert.InEpsilon(t, simulated.execution, played.execution, 0.03, "execution")
	assert.InEpsilon(t, simulated.fetches, played.fetches, 0.09, "fetches")
	assert.InEpsilon(t, simulated.wait, played.wait, 0.3, "wait")

	// A policy that uses more than the project gives shorter waits.
	baseline.add(simulate(t, jobs, "baseline", 1), 1)
	assert.Greater(t, baseline.wait, 1.5*played.wait)
}

// means are over the jobs; fetches are per job.
type means struct{ wait, execution, fetches float64 }

// add adds one of several runs.
func (m *means) add(run map[trace.Line]seen, of int) {
	weight := 1 / float64(len(run)*of)
	for _, job := range run {
		m.wait += weight * job.wait
		m.execution += weight * job.execution
		if job.fetched {
			m.fetches += weight
		}
	}
}
