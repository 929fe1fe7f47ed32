package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/lab/results"
)

// Lab plays the trials of some runs, several at once.
type Lab struct {
	scenario *Scenario
	runs     []*Run
	trials   []*Trial
	jobs     int64        // of all trials
	done     atomic.Int64 // jobs that were sent
}

// NewLab plans the trials of runs that Choose has returned. All runs of the
// first seed come first, so that after an interruption the runs can still be
// compared.
func NewLab(s *Scenario, runs []*Run) *Lab {
	l := &Lab{scenario: s, runs: runs}
	for n := range s.Seeds {
		for _, r := range runs {
			l.trials = append(l.trials, &Trial{scenario: s, run: r, seed: s.Seed + uint64(n)})
			l.jobs += int64(r.jobs.count)
		}
	}
	return l
}

// Trials is how many trials there are to play.
func (l *Lab) Trials() int { return len(l.trials) }

// Done is the share of the jobs that were sent. It may be called while the lab
// plays.
func (l *Lab) Done() float64 { return float64(l.done.Load()) / float64(l.jobs) }

// Play plays the trials, several at a time, and calls ended after each. The calls do
// not overlap. It stops at the first fault. When ctx ends, it returns the results
// of the trials that were done, and cli.ErrInterrupted.
func (l *Lab) Play(ctx context.Context, parallel int, ended func(*Trial)) (results.Set, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	next := make(chan *Trial)
	var group sync.WaitGroup
	var mutex sync.Mutex
	var fault error
	played := 0
	for range min(parallel, len(l.trials)) {
		group.Go(func() {
			for t := range next {
				err := t.play(ctx, &l.done)
				mutex.Lock()
				switch {
				case err == nil:
					t.played = true
					played++
					ended(t)
				case !errors.Is(err, context.Canceled):
					fault = err
					cancel()
				}
				mutex.Unlock()
			}
		})
	}
	for _, t := range l.trials {
		select {
		case next <- t:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(next)
	group.Wait()
	switch {
	case fault != nil:
		return results.Set{}, fault
	case played == 0:
		return results.Set{}, fmt.Errorf("%w before any run was done", cli.ErrInterrupted)
	case played < len(l.trials):
		return l.results(), fmt.Errorf("%w: these are the %d of %d runs that were done", cli.ErrInterrupted, played, len(l.trials))
	}
	return l.results(), nil
}

// PlayVisibly is Play with a line for each trial that has ended, and the progress, on to.
func (l *Lab) PlayVisibly(ctx context.Context, parallel int, to io.Writer) (results.Set, error) {
	progress := cli.StartProgress(to, l.Done)
	defer progress.End()
	played := 0
	return l.Play(ctx, parallel, func(t *Trial) {
		played++
		progress.Line(fmt.Sprintf("%d/%d %v", played, l.Trials(), t))
	})
}

// results gathers what came of the trials that were played. A run without any
// is left out.
func (l *Lab) results() results.Set {
	set := results.New(l.scenario.Name)
	for _, r := range l.runs {
		var trials []*Trial
		for _, t := range l.trials {
			if t.played && t.run == r {
				trials = append(trials, t)
			}
		}
		if len(trials) > 0 {
			set.Runs = append(set.Runs, l.gather(r, trials))
		}
	}
	return set
}

// gather puts the trials of a run together.
func (l *Lab) gather(r *Run, trials []*Trial) results.Run {
	res := results.Run{
		Name: r.Name, Overload: r.Overload, Policy: r.Policy, Against: r.Against, Reference: r.Reference, Sidecars: r.Sidecars.Count,
		Settings: r.describe(l.scenario.End), History: trials[0].times.history(),
	}
	var all []results.Counts
	for _, t := range trials {
		res.Trials = append(res.Trials, results.Trial{Seed: t.seed, Rows: t.stats.Rows(r.Name), Counts: t.counts})
		all = append(all, t.counts)
	}
	res.Counts = results.Mean(all)
	merged, crowd := trials[0].stats, trials[0].crowd
	for _, t := range trials[1:] {
		merged.Merge(t.stats)
		if crowd != nil {
			crowd.Merge(t.crowd)
		}
	}
	if crowd != nil {
		res.Apart = crowd.Rows(r.Name)
		for i := range res.Apart {
			res.Apart[i].Priority = map[string]string{"high": results.Crowd, "low": results.Others}[res.Apart[i].Priority]
		}
	}
	res.Rows, res.Variance = merged.Rows(r.Name), merged.WaitVariance(r.Name)
	return res
}
