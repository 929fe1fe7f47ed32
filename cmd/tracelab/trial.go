package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"example.org/pilotfish/internal/lab/sim"
	"example.org/pilotfish/internal/lab/stats"
)

// trial is one run with one seed.
type trial struct {
	spec *spec
	seed uint64
	// sample is the time between two looks at the fleet, end that of the run
	// unless it is 0.
	sample, end time.Duration

	// What came of it.
	stats  *stats.Run
	counts counts
	times  *timelines
	took   time.Duration
}

// play simulates the trial, and counts the jobs that end in done. What it
// holds does not grow with their number.
func (t *trial) play(ctx context.Context, done *atomic.Int64) error {
	c, err := t.spec.setup(t.seed)
	if err != nil {
		return fmt.Errorf("run %q: %w", t.spec.Name, err)
	}
	in, err := t.spec.jobs.open(t.seed)
	if err != nil {
		return fmt.Errorf("run %q: %w", t.spec.Name, err)
	}
	defer in.Close()

	upstreams := t.spec.Fleet.Upstreams
	t.stats = stats.NewRun(upstreams)
	t.times = newTimelines(upstreams, t.spec.Stalled)
	c.Source, c.End = in, t.end
	c.SampleEvery, c.Sample = t.sample, t.times.add
	c.Observe = func(r *sim.Result) {
		done.Add(1)
		t.counts.add(r)
		if r.Prefetch {
			return // nobody waits for it
		}
		t.stats.Add(stats.Sample{
			Priority: r.Priority, Upstream: r.Server,
			Wait: r.Wait.Seconds(), Execution: r.Run.Seconds(), Unloaded: r.Work.Seconds(),
		})
	}
	begin := time.Now()
	totals, err := sim.Run(ctx, c)
	t.took = time.Since(begin)
	if err != nil {
		return fmt.Errorf("run %q, seed %d: %w", t.spec.Name, t.seed, err)
	}
	t.counts.finish(totals, &t.spec.Fleet, t.times)
	return nil
}
