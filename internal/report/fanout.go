package report

import (
	"context"
	"math/rand/v2"
	"slices"
)

// fanout runs one goroutine for each upstream of a set that changes.
type fanout struct {
	rng  *rand.Rand    // only run uses it
	sets chan []string // the newest set that run has not taken yet
}

func newFanout(rng *rand.Rand) fanout { return fanout{rng: rng, sets: make(chan []string, 1)} }

// set replaces the upstreams, given by address. It never blocks, and may be
// called before run. Upstreams that stay are not disturbed.
func (f *fanout) set(addresses []string) {
	set := slices.Clone(addresses)
	for {
		select {
		case f.sets <- set:
			return
		default:
		}
		select {
		case <-f.sets: // replaced before run took it
		default:
		}
	}
}

// task works for one upstream until ctx is done.
type task func(ctx context.Context, address string, rng *rand.Rand)

// worker is the goroutine of one upstream.
type worker struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// run does the task for each upstream of the set until ctx is done, and then
// waits for all of them to end.
func (f *fanout) run(ctx context.Context, do task) {
	workers := map[string]worker{}
	for {
		select {
		case set := <-f.sets:
			stop(workers, set)
			f.start(ctx, workers, set, do)
		case <-ctx.Done():
			stop(workers, nil)
			return
		}
	}
}

// stop ends the workers of all upstreams that are not in the set, and waits for
// them: an upstream that comes back is never asked twice at once.
func stop(workers map[string]worker, set []string) {
	stays := make(map[string]bool, len(set))
	for _, address := range set {
		stays[address] = true
	}
	var leaving []worker
	for address, w := range workers {
		if !stays[address] {
			w.cancel()
			leaving = append(leaving, w)
			delete(workers, address)
		}
	}
	for _, w := range leaving {
		<-w.done
	}
}

// start adds a worker for each upstream of the set that has none.
func (f *fanout) start(ctx context.Context, workers map[string]worker, set []string, do task) {
	for _, address := range set {
		if _, ok := workers[address]; ok {
			continue
		}
		ctx, cancel := context.WithCancel(ctx)
		done := make(chan struct{})
		rng := rand.New(rand.NewPCG(f.rng.Uint64(), f.rng.Uint64()))
		workers[address] = worker{cancel: cancel, done: done}
		go func() {
			defer close(done)
			do(ctx, address, rng)
		}()
	}
}
