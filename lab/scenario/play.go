package scenario

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/lab/figures"
	"example.org/pilotfish/lab/rivals"
	"example.org/pilotfish/lab/sim"
	"example.org/pilotfish/lab/stats"
	"example.org/pilotfish/lab/workload"
	"example.org/pilotfish/pkg/selection"
)

// trial is the result of one run with one seed. Its size does not grow with the number of jobs.
type trial struct {
	stats    stats.Run
	counts   counts
	variance []stats.Moments // of low jobs' waits: of all low jobs, then of those at each server
	trend    *trend          // of bursts; nil for other patterns
	drawn    figures.Run     // data of the figures; empty if there are none
}

// counts are a trial's other numbers by their names in the tables. The load is the used core time divided by the
// upstreams' core time until the last job ends.
type counts map[string]float64

// Play simulates every run with every seed, parallel trials at a time, and calls ended with a description after each.
// The calls do not overlap. It stops at the first error, and when ctx is done.
func (s *Scenario) Play(ctx context.Context, parallel int, ended func(string)) (*Results, error) {
	results := &Results{scenario: s, trials: make([][]trial, len(s.Runs))}
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	var mutex sync.Mutex
	for i := range s.Runs {
		results.trials[i] = make([]trial, s.Seeds)
	}
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
				results.trials[i][n] = t
				ended(fmt.Sprintf("%s, seed %d: %s jobs in %.1f s", r.Name, seed, stats.Thousands(int(t.counts["jobs"])), time.Since(begin).Seconds()))
				return nil
			})
		}
	}
	if err := group.Wait(); ctx.Err() == nil {
		return results, err
	}
	return nil, context.Cause(ctx)
}

// trial simulates a run with a seed.
func (s *Scenario) trial(ctx context.Context, r *Run, seed uint64) (t trial, err error) {
	c, err := s.setup(r, seed)
	if err != nil {
		return t, err
	}
	w := r.Workload
	w.Seed = seed
	g, err := workload.New(w)
	if err != nil {
		return t, err
	}
	c.Source = g.Jobs
	if plan, ok := c.Policy.(*rivals.Plan); ok { // it knows all jobs in advance
		all, err := workload.New(w)
		if err != nil {
			return t, err
		}
		plan.Know(all.Jobs, r.Fleet.Addresses())
	}
	n := counts{}
	t = trial{stats: stats.NewRun(), counts: n, variance: make([]stats.Moments, 1+r.Fleet.Upstreams), trend: newTrend(&w)}
	names := map[sim.Outcome]string{sim.Expired: "expired", sim.Overrun: "overrun", sim.Lost: "lost", sim.Unserved: "unserved", sim.Left: "left"}
	c.Observe = func(job *sim.Result) {
		n["jobs"]++
		n["retries"] += float64(max(0, job.Attempts-1))
		if name, ok := names[job.Outcome]; ok {
			n[name]++
		}
		t.trend.add(job)
		if !job.Prefetch { // nobody waits for a prefetch
			t.stats.AddStalled(job.Priority, job.Wait.Seconds(), job.Run.Seconds(), job.Stalled.Seconds())
			if job.Priority == selection.Low {
				t.variance[0].Add(job.Wait.Seconds())
				if job.Server >= 0 {
					t.variance[1+job.Server].Add(job.Wait.Seconds())
				}
			}
		}
	}
	if s.Drawn && seed == s.Seed {
		s.watch(&c, &t.drawn)
	}
	totals, err := sim.Run(ctx, c)
	if err != nil {
		return t, err
	}
	n["fetches"], n["evictions"], n["reports"] = float64(totals.Fetches), float64(totals.Evictions), float64(totals.Reports)
	n["fetches per 1,000"] = 1000 * n["fetches"] / max(1, n["jobs"])
	if upstreamSeconds := totals.Length.Seconds() * float64(r.Fleet.Upstreams); upstreamSeconds > 0 {
		n["reports per upstream and s"] = n["reports"] / upstreamSeconds
		n["load"] = totals.CoreSeconds / upstreamSeconds / float64(r.Fleet.Cores)
	}
	return t, nil
}

// setup returns the simulator's configuration of a run, without the jobs and the observers.
func (s *Scenario) setup(r *Run, seed uint64) (c sim.Config, err error) {
	c = sim.Config{Seed: seed, Fleet: r.Fleet, Sidecars: r.Sidecars, WarmUp: s.WarmUp, End: s.End}
	if c.Policy, err = rivals.New(r.Policy); err != nil {
		return c, err
	}
	if len(r.Times) > 0 {
		c.Policy = multiply(r.Times)
	}
	if c.Detector, err = rivals.NewDetector(r.detection()); err != nil {
		return c, err
	}
	return c, nil
}

// detection returns the run's settings of overload detection.
func (r *Run) detection() overload.Settings {
	s := overload.Default()
	s.Policy, s.Stalled, s.Reset = r.Overload, r.Stalled, r.Reset
	if r.IgnoreWait {
		s.Wait = 0
	}
	return s
}
