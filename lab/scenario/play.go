package scenario

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"example.org/pilotfish/lab/compare"
)

// Choice is the part of a scenario to play. The zero value of a field leaves the
// scenario as it is, but Scale is required.
type Choice struct {
	// Only names runs; the first, with which they are compared, is played too.
	Only []string
	// Seeds is the number of trials of each run.
	Seeds int
	// Scale is the share of the jobs and of the time, above 0 to 1.
	Scale float64
}

// Lab plays a scenario once.
type Lab struct {
	scenario *Scenario
	runs     []*Run
	trials   []*Trial
	// Trials is how many trials there are.
	Trials int
}

// NewLab lays a choice over a scenario, measures its jobs and plans its trials. Its
// errors name the flags of tracelab simulate.
func NewLab(c Choice, s *Scenario) (*Lab, error) {
	runs, err := s.choose(c)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	l := &Lab{scenario: s, runs: runs, Trials: s.Seeds * len(runs)}
	for n := range s.Seeds {
		for _, r := range runs {
			l.trials = append(l.trials, &Trial{scenario: s, run: r, seed: s.Seed + uint64(n)})
		}
	}
	return l, nil
}

// choose lays a choice over the scenario, measures the jobs, and returns the runs to play.
func (s *Scenario) choose(c Choice) ([]*Run, error) {
	switch {
	case c.Seeds < 0 || c.Seeds > maxSeeds:
		return nil, fmt.Errorf("--seeds %d is not between 1 and %d", c.Seeds, maxSeeds)
	case !(c.Scale > 0 && c.Scale <= 1):
		return nil, fmt.Errorf("--scale %v is not above 0 and at most 1", c.Scale)
	}
	if c.Seeds > 0 {
		s.Seeds = c.Seeds
	}
	wanted := map[string]bool{}
	for _, name := range c.Only {
		at := slices.IndexFunc(s.Runs, func(r Run) bool { return r.Name == name })
		if at < 0 {
			var names []string
			for _, r := range s.Runs {
				names = append(names, r.Name)
			}
			return nil, fmt.Errorf("--run %q: the scenario's runs are %s", name, strings.Join(names, "; "))
		}
		wanted[name] = true
		wanted[s.Runs[0].Name] = true
	}
	s.End = time.Duration(float64(s.End) * c.Scale)
	s.WarmUp = time.Duration(float64(s.WarmUp) * c.Scale)
	var runs []*Run
	for i := range s.Runs {
		s.Runs[i].Fleet.Scale(c.Scale)
		if len(wanted) == 0 || wanted[s.Runs[i].Name] {
			runs = append(runs, &s.Runs[i])
		}
	}
	return runs, s.measure(c.Scale)
}

// Play plays the trials, several at a time, and calls ended after each.
// The calls do not overlap. It stops at the first fault, and when ctx ends.
func (l *Lab) Play(ctx context.Context, parallel int, ended func(*Trial)) (set compare.Set, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan *Trial)
	var group sync.WaitGroup
	var mutex sync.Mutex
	for range min(parallel, len(l.trials)) {
		group.Go(func() {
			for t := range next {
				if err := t.play(ctx); err != nil {
					cancel(err) // the first one counts
					continue
				}
				mutex.Lock()
				ended(t)
				mutex.Unlock()
			}
		})
	}
	for _, t := range l.trials {
		next <- t
	}
	close(next)
	group.Wait()
	if ctx.Err() != nil {
		return set, context.Cause(ctx)
	}
	set.Scenario = l.scenario.Name
	for _, r := range l.runs {
		set.Runs = append(set.Runs, l.gather(r))
	}
	return set, nil
}

// gather puts the trials of a run together.
func (l *Lab) gather(r *Run) compare.Run {
	trials := slices.DeleteFunc(slices.Clone(l.trials), func(t *Trial) bool { return t.run != r })
	res := compare.Run{
		Name: r.Name, Overload: r.Overload, Policy: r.Policy, Reference: r.Reference, Sidecars: r.Sidecars.Count,
		Jobs: l.scenario.jobs.count, Length: l.scenario.jobs.length,
	}
	var all []compare.Counts
	for _, t := range trials {
		res.Trials = append(res.Trials, compare.Trial{Seed: t.seed, Rows: t.stats.Rows(r.Name), Counts: t.counts})
		all = append(all, t.counts)
	}
	res.Counts = compare.Mean(all)
	merged := trials[0].stats
	for _, t := range trials[1:] {
		merged.Merge(t.stats)
	}
	res.Rows, res.Variance = merged.Rows(r.Name), merged.WaitVariance(r.Name)
	return res
}
