package report

import (
	"context"
	"math/rand/v2"
	"slices"
)

// crowd keeps one goroutine for each upstream of a set that changes.
type crowd struct {
	rng  *rand.Rand    // only run uses it
	sets chan []string // the newest set that run has not taken up yet
}

func newCrowd(rng *rand.Rand) crowd { return crowd{rng: rng, sets: make(chan []string, 1)} }

// Follow replaces the set of upstreams to ask about, given by address. It
// never blocks and may be called before Run. Those that stay are not
// disturbed; those that leave stop within a moment.
func (c *crowd) Follow(addresses []string) {
	set := slices.Clone(addresses)
	for {
		select {
		case c.sets <- set:
			return
		default:
		}
		select {
		case <-c.sets: // out of date before run has seen it
		default:
		}
	}
}

// member is one upstream being followed.
type member struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// each follows one upstream until ctx is done.
type each func(ctx context.Context, address string, rng *rand.Rand)

// run has each upstream followed until ctx is done, and then waits for all.
func (c *crowd) run(ctx context.Context, follow each) {
	members := map[string]member{}
	for {
		select {
		case set := <-c.sets:
			c.leave(members, set)
			c.join(ctx, members, set, follow)
		case <-ctx.Done():
			c.leave(members, nil)
			return
		}
	}
}

// leave ends the following of all that are not in the set, and waits for it:
// an upstream that comes back is never asked twice at once.
func (c *crowd) leave(members map[string]member, set []string) {
	stays := make(map[string]bool, len(set))
	for _, address := range set {
		stays[address] = true
	}
	var leaving []member
	for address, m := range members {
		if !stays[address] {
			m.cancel()
			leaving = append(leaving, m)
			delete(members, address)
		}
	}
	for _, m := range leaving {
		<-m.done
	}
}

// join begins to follow those in the set that are not yet followed.
func (c *crowd) join(ctx context.Context, members map[string]member, set []string, follow each) {
	for _, address := range set {
		if _, ok := members[address]; ok {
			continue
		}
		ctx, cancel := context.WithCancel(ctx)
		done := make(chan struct{})
		rng := rand.New(rand.NewPCG(c.rng.Uint64(), c.rng.Uint64()))
		members[address] = member{cancel: cancel, done: done}
		go func() {
			defer close(done)
			follow(ctx, address, rng)
		}()
	}
}
