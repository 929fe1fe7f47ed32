// Package report asks every upstream, over and over, how loaded it is and
// which projects it has cached, and hands the answers over as reports.
//
// Each upstream is polled on its own: one that hangs, floods or talks
// nonsense costs the others nothing. What it says is bounded, and what cannot
// be understood is unknown, never guessed.
package report

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"pilotfish/internal/pool"
)

// Poller polls a set of upstreams. Its methods are safe for concurrent use.
type Poller struct {
	config  Config
	fetcher fetcher
	rng     *rand.Rand // only Run uses it
	sink    func(address string, r pool.Report)
	failed  func(address string, err error)
	sets    chan []string // the newest set that Run has not taken up yet
}

// New returns a Poller that follows nobody yet, or says what is wrong with
// the configuration.
//
// sink gets every report. failed gets an *Error for every poll that gave none,
// and for every cache listing that could not be read although the rest was
// handed over. Both are called from several goroutines, in order for one
// upstream, and hold up only the upstream that they were called for. rng
// spreads the polls and belongs to the Poller from now on.
func New(config Config, rng *rand.Rand, sink func(address string, r pool.Report), failed func(address string, err error)) (*Poller, error) {
	if rng == nil || sink == nil || failed == nil {
		panic("report: New needs a random source, a sink and a failed function")
	}
	config = config.filled()
	if err := config.check(); err != nil {
		return nil, fmt.Errorf("reports: %w", err)
	}
	return &Poller{
		config:  config,
		fetcher: newFetcher(config),
		rng:     rng,
		sink:    sink,
		failed:  failed,
		sets:    make(chan []string, 1),
	}, nil
}

// Follow replaces the set of upstreams to poll, given by address. It never
// blocks and may be called before Run. Those that stay are not disturbed;
// those that leave stop within a moment.
func (p *Poller) Follow(addresses []string) {
	set := slices.Clone(addresses)
	for {
		select {
		case p.sets <- set:
			return
		default:
		}
		select {
		case <-p.sets: // out of date before Run has seen it
		default:
		}
	}
}

// polling is one upstream being polled.
type polling struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// Run polls until ctx is done. When it returns, no poll and no goroutine is
// left, and neither function will be called. Call it once.
func (p *Poller) Run(ctx context.Context) {
	following := map[string]polling{}
	for {
		select {
		case set := <-p.sets:
			p.leave(following, set)
			p.join(ctx, following, set)
		case <-ctx.Done():
			p.leave(following, nil)
			p.fetcher.client.CloseIdleConnections()
			return
		}
	}
}

// leave ends the polling of all that are not in the set, and waits for it: an
// upstream that comes back is never polled twice at once.
func (p *Poller) leave(following map[string]polling, set []string) {
	stays := make(map[string]bool, len(set))
	for _, address := range set {
		stays[address] = true
	}
	var leaving []polling
	for address, f := range following {
		if !stays[address] {
			f.cancel()
			leaving = append(leaving, f)
			delete(following, address)
		}
	}
	for _, f := range leaving {
		<-f.done
	}
}

// join begins the polling of those in the set that are not yet followed.
func (p *Poller) join(ctx context.Context, following map[string]polling, set []string) {
	for _, address := range set {
		if _, ok := following[address]; ok {
			continue
		}
		ctx, cancel := context.WithCancel(ctx)
		done := make(chan struct{})
		f := newFollower(p, address, rand.New(rand.NewPCG(p.rng.Uint64(), p.rng.Uint64())))
		following[address] = polling{cancel: cancel, done: done}
		go func() {
			defer close(done)
			f.run(ctx)
		}()
	}
}
