//go:build long

package e2e

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/lab/replay"
	"example.org/pilotfish/internal/lab/sim"
	"example.org/pilotfish/internal/lab/workload"
	"example.org/pilotfish/pkg/overload"
	"example.org/pilotfish/pkg/selection/rivals"
	"example.org/pilotfish/pkg/trace"
)

// liveTrace is five minutes of an office day's jobs that keep two thirds of the
// cores busy, in the time of the replay: schedules that fire all their channels,
// prefetches, and people's jobs that wait for each other. Sizes are less
// long-tailed than usual, lest a few jobs settle every mean, and jobs are long
// beside what a busy machine adds to each.
func liveTrace(t *testing.T) []trace.Job {
	t.Helper()
	c := workload.Default()
	c.Seed, c.Jobs, c.Duration, c.StartHour, c.Submitters, c.Static = 9, 1000, 300, 10, 12, true
	c.Population.Bytes, c.Population.BytesSpread = 24e6, 0.8
	c.Population.Work, c.Population.WorkSpread, c.Population.View = 1.35, 0.8, 1.2
	c.Session.WorkSpread = 0.8
	// Nobody's patience shall end: what then happens, other tests show.
	c.LowTimeouts = trace.Timeouts{Queue: 600, Evaluate: 1800, Stream: 3600}
	c.HighTimeouts = c.LowTimeouts
	g, err := workload.New(c)
	require.NoError(t, err)
	var jobs []trace.Job
	for {
		job, err := g.Next()
		if errors.Is(err, io.EOF) {
			return jobs
		}
		require.NoError(t, err)
		jobs = append(jobs, replay.Compress(job, liveSpeed))
	}
}

// listed is a trace in memory.
type listed []trace.Job

func (l *listed) Next() (trace.Job, error) {
	if len(*l) == 0 {
		return trace.Job{}, io.EOF
	}
	job := (*l)[0]
	*l = (*l)[1:]
	return job, nil
}

// simulate is the mean of what simulations with several seeds come to. Each calls
// the projects otherwise, because where a cold project goes depends on its name
// and the servers' addresses, and these are others in each replay.
func simulate(t *testing.T, jobs []trace.Job, policy string) figures {
	t.Helper()
	var all tally
	const seeds = 20
	for seed := range uint64(seeds) {
		chosen, err := rivals.New(policy)
		require.NoError(t, err)
		detector, err := overload.New("none", 100)
		require.NoError(t, err)
		source := listed(jobs)
		if policy != "baseline" { // which goes by the name alone
			source = renamed(jobs, seed)
		}
		c := sim.Config{
			Source: &source, Seed: seed, Policy: chosen, Detector: detector,
			Fleet: sim.DefaultFleet(), Sidecars: sim.DefaultSidecars(),
			Observe: func(r *sim.Result) {
				require.Equal(t, sim.Done, r.Outcome)
				kind := trace.Process
				if r.Prefetch {
					kind = trace.Prefetch
				}
				all.add(kind, r.Run.Seconds(), r.Wait.Seconds(), r.Fetched)
			},
		}
		c.Fleet.Upstreams, c.Fleet.Cores = liveServers, liveCores
		c.Sidecars.Count, c.Sidecars.Interval, c.Sidecars.Hints = liveSidecars, liveInterval, true
		_, err = sim.Run(t.Context(), c)
		require.NoError(t, err)
	}
	return all.figures()
}

func renamed(jobs []trace.Job, seed uint64) []trace.Job {
	var others []trace.Job
	for _, j := range jobs {
		j.Project = trace.Project(fmt.Sprintf("%s-%d", j.Project, seed))
		others = append(others, j)
	}
	return others
}

// tally adds up what jobs took, in seconds.
type tally struct {
	all, fetched          int
	waited, processed     int // of those that are no prefetches
	executions, waitsTime float64
}

// noticeable is a wait that is one, and not the clock's or the network's.
const noticeable = 0.025

func (c *tally) add(kind trace.Kind, execution, wait float64, fetched bool) {
	c.all++
	if fetched {
		c.fetched++
	}
	if kind == trace.Prefetch {
		return
	}
	c.processed++
	c.executions += execution
	c.waitsTime += wait
	if wait > noticeable {
		c.waited++
	}
}

func (c *tally) figures() figures {
	n := float64(c.processed)
	return figures{
		execution: c.executions / n, wait: c.waitsTime / n, waited: float64(c.waited) / n,
		fetches: 1000 * float64(c.fetched) / float64(c.all),
	}
}

// figures are what a run comes to: means in seconds, the share of the jobs that
// waited, and fetches per 1,000 jobs.
type figures struct{ execution, wait, waited, fetches float64 }

func (f figures) String() string {
	return fmt.Sprintf("execution %3.0f ms, wait %3.0f ms, %4.1f %% waited, %5.1f fetches per 1,000 jobs",
		1000*f.execution, 1000*f.wait, 100*f.waited, f.fetches)
}

// agrees holds a live run against its simulation. Two cores with work for twelve
// were seen to add a tenth to what a job takes, and a fifth to its wait, which a
// queue multiplies. About twice that is allowed, and room for the chance in a
// policy: among its simulations alone the wait differs from their mean by up to
// 30 %, the fetches by 10 %, the share that waited by four points.
func (f figures) agrees(t *testing.T, policy string, with figures) {
	t.Helper()
	assert.InEpsilon(t, with.execution, f.execution, 0.2, "%s: execution", policy)
	assert.InEpsilon(t, with.fetches, f.fetches, 0.2, "%s: fetches", policy)
	// A queue multiplies what each job takes longer than it should, and chance
	// places projects: single simulations differ by as much.
	assert.InDelta(t, with.wait, f.wait, 0.5*with.wait+0.1, "%s: wait", policy)
	assert.InDelta(t, with.waited, f.waited, 0.1, "%s: share that waited", policy)
}
