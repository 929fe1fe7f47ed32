package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"example.org/pilotfish/internal/cli"
)

// lab plays a scenario's trials side by side.
type lab struct {
	trials []*trial
	// parallel is how many play at once.
	parallel int
	// jobs is how many jobs all trials have, done those that have ended.
	jobs int64
	done atomic.Int64
	// finished is called after each trial, one call at a time.
	finished func(*trial)
}

// newLab plans the trials of the runs: all runs of the first seed come first,
// so that what is done before an interruption can be compared.
func newLab(s *scenario, runs []*spec, parallel int) *lab {
	l := &lab{parallel: parallel, finished: func(*trial) {}}
	for n := range s.Seeds {
		for _, r := range runs {
			l.trials = append(l.trials, &trial{spec: r, seed: s.Seed + uint64(n), sample: s.Sample, end: s.End})
			l.jobs += int64(r.jobs.count)
		}
	}
	return l
}

// run returns the trials that were played to their end, in the order planned.
// It stops at the first fault; when ctx ends, the error is cli.ErrInterrupted.
func (l *lab) run(ctx context.Context) ([]*trial, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan *trial)
	var group sync.WaitGroup
	var mutex sync.Mutex
	played := make(map[*trial]bool)
	for range min(l.parallel, len(l.trials)) {
		group.Go(func() {
			for t := range next {
				err := t.play(ctx, &l.done)
				mutex.Lock()
				switch {
				case err == nil:
					played[t] = true
					l.finished(t)
				case !errors.Is(err, context.Canceled):
					cancel(err)
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

	var ended []*trial
	for _, t := range l.trials {
		if played[t] {
			ended = append(ended, t)
		}
	}
	err := context.Cause(ctx)
	if errors.Is(err, context.Canceled) {
		err = cli.ErrInterrupted
	}
	return ended, err
}
