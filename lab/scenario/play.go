package scenario

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"example.org/pilotfish/lab/compare"
	"example.org/pilotfish/lab/sim"
	"example.org/pilotfish/lab/stats"
	"example.org/pilotfish/lab/workload"
)

// Play plays every run with every seed, several at a time, and calls ended after each with what
// was played. The calls do not overlap. It stops at the first fault, and when ctx ends.
func (s *Scenario) Play(ctx context.Context, parallel int, ended func(string)) (set compare.Set, err error) {
	set = compare.Set{Scenario: s.Name, Jobs: s.Workload.Len(), Length: s.Workload.Duration}
	for i := range s.Runs {
		r := &s.Runs[i]
		set.Runs = append(set.Runs, compare.Run{
			Name: r.Name, Overload: r.Overload, Policy: r.Policy, Reference: r.Reference, Trials: make([]compare.Trial, s.Seeds),
		})
	}
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	var mutex sync.Mutex
	for n := range s.Seeds {
		for i := range s.Runs {
			group.Go(func() error {
				r, seed, begin := &s.Runs[i], s.Seed+uint64(n), time.Now()
				t, err := s.trial(within, r, seed)
				if err != nil {
					return fmt.Errorf("run %q, seed %d: %w", r.Name, seed, err)
				}
				mutex.Lock()
				defer mutex.Unlock()
				set.Runs[i].Trials[n] = t
				ended(fmt.Sprintf("%s, seed %d: %s jobs in %.1f s", r.Name, seed, stats.Thousands(int(t.Counts.Jobs)), time.Since(begin).Seconds()))
				return nil
			})
		}
	}
	if err := group.Wait(); ctx.Err() == nil {
		return set, err
	}
	return set, context.Cause(ctx)
}

// trial simulates a run with a seed.
func (s *Scenario) trial(ctx context.Context, r *Run, seed uint64) (t compare.Trial, err error) {
	c, err := r.setup(seed)
	if err != nil {
		return t, err
	}
	w := s.Workload
	w.Seed = seed
	if c.Source, err = workload.New(w); err != nil {
		return t, err
	}
	t = compare.Trial{Seed: seed, Stats: stats.NewRun(r.Fleet.Upstreams)}
	c.WarmUp, c.End = s.WarmUp, s.End
	c.Observe = func(job *sim.Result) {
		count(&t.Counts, job)
		if !job.Prefetch { // nobody waits for that
			t.Stats.Add(stats.Sample{Priority: job.Priority, Upstream: job.Server, Wait: job.Wait.Seconds(), Execution: job.Run.Seconds()})
		}
	}
	totals, err := sim.Run(ctx, c)
	if err != nil {
		return t, err
	}
	n := &t.Counts
	n.Fetches, n.Evictions, n.Reports = float64(totals.Fetches), float64(totals.Evictions), float64(totals.Reports)
	n.FetchesPer1k = 1000 * n.Fetches / max(1, n.Jobs)
	if upstreamSeconds := totals.Length.Seconds() * float64(r.Fleet.Upstreams); upstreamSeconds > 0 {
		n.ReportsPerSecond = n.Reports / upstreamSeconds
		n.Load = totals.CoreSeconds / upstreamSeconds / float64(r.Fleet.Cores)
	}
	return t, nil
}

// count adds a job that ended.
func count(c *compare.Counts, r *sim.Result) {
	c.Jobs++
	c.Retries += float64(max(0, r.Attempts-1))
	switch r.Outcome {
	case sim.Expired:
		c.Expired++
	case sim.Overrun:
		c.Overrun++
	case sim.Lost:
		c.Lost++
	case sim.Unserved:
		c.Unserved++
	case sim.Done, sim.Failed:
	}
}
