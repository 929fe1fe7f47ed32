// Package report asks, over and over, how loaded every upstream is and which
// projects it has cached, and hands the answers over as reports.
//
// A Poller asks the upstreams themselves: one that hangs, floods or talks
// nonsense costs the others nothing. A Prometheus asks the server that scrapes
// them, which spares upstreams that have very many sidecars. What they say is
// bounded, and what cannot be understood is unknown, never guessed.
package report

import (
	"context"
	"math/rand/v2"

	"example.org/pilotfish/internal/pool"
)

// Poller polls a set of upstreams. Its methods are safe for concurrent use.
type Poller struct {
	asker
	crowd
	sink func(address string, r pool.Report)
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
	asker, err := newAsker(config, failed)
	if err != nil {
		return nil, err
	}
	return &Poller{asker: asker, crowd: newCrowd(rng), sink: sink}, nil
}

// Run polls until ctx is done. When it returns, no poll and no goroutine is
// left, and neither function will be called. Call it once.
func (p *Poller) Run(ctx context.Context) {
	p.run(ctx, func(ctx context.Context, address string, rng *rand.Rand) {
		every(ctx, p.config.Interval, rng, newFollower(p, address).poll)
	})
	p.fetcher.client.CloseIdleConnections()
}
