package report

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
)

// followers run one goroutine for each upstream of a set that changes.
type followers struct {
	rng  *rand.Rand    // only run uses it
	sets chan []string // the newest set that run has not taken yet

	mu  sync.Mutex
	all map[string]follower // by address
}

// follower is the goroutine of one upstream.
type follower struct {
	cancel context.CancelFunc
	done   chan struct{}
	early  chan struct{} // holds one while the upstream is to be asked early
}

// task works for one upstream until ctx is done.
type task func(ctx context.Context, address string, rng *rand.Rand, early <-chan struct{})

func newFollowers(rng *rand.Rand) *followers {
	return &followers{rng: rng, sets: make(chan []string, 1), all: map[string]follower{}}
}

// Follow is that of Source. Upstreams that stay are not disturbed.
func (f *followers) Follow(addresses []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.sets: // replaced before run took it
	default:
	}
	f.sets <- slices.Clone(addresses)
}

// Ask is that of Source.
func (f *followers) Ask(address string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case f.all[address].early <- struct{}{}: // a nil channel takes nothing
	default:
	}
}

// run does the task for each upstream of the set until ctx is done, and then
// waits for all of them to end.
func (f *followers) run(ctx context.Context, do task) {
	for {
		select {
		case set := <-f.sets:
			f.stop(set)
			f.start(ctx, set, do)
		case <-ctx.Done():
			f.stop(nil)
			return
		}
	}
}

// stop ends the goroutines of all upstreams that are not in the set, and waits for
// them: an upstream that comes back is never asked twice at once.
func (f *followers) stop(set []string) {
	stays := make(map[string]bool, len(set))
	for _, address := range set {
		stays[address] = true
	}
	var leaving []follower
	f.mu.Lock()
	for address, one := range f.all {
		if !stays[address] {
			one.cancel()
			leaving = append(leaving, one)
			delete(f.all, address)
		}
	}
	f.mu.Unlock()
	for _, one := range leaving {
		<-one.done
	}
}

// start adds a goroutine for each upstream of the set that has none.
func (f *followers) start(ctx context.Context, set []string, do task) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, address := range set {
		if _, ok := f.all[address]; ok {
			continue
		}
		ctx, cancel := context.WithCancel(ctx)
		one := follower{cancel: cancel, done: make(chan struct{}), early: make(chan struct{}, 1)}
		rng := rand.New(rand.NewPCG(f.rng.Uint64(), f.rng.Uint64()))
		f.all[address] = one
		go func() {
			defer close(one.done)
			do(ctx, address, rng, one.early)
		}()
	}
}
