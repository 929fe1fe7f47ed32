//go:build soak

package e2e

import (
	"context"
	"math/rand/v2"
	"time"
)

// fault is what is wrong with an upstream for a while.
type fault uint32

const (
	healthy    fault = iota
	refusing         // the port is closed; jobs that are there go on
	killed           // so is every connection
	resetting        // jobs are read in full, and the connection reset before any byte of an answer
	hanging          // jobs are read in full, and nothing happens
	tearing          // the connection is reset during the answer
	truncating       // the connection is closed during the answer
	failing          // 500
	unwilling        // 503 with Job-Started: no
	slow             // answers are late, and come in drops
	garbling         // reports are garbage; jobs are none the worse for it
	faults           // how many there are
)

func (f fault) String() string {
	return [faults]string{
		"healthy", "refusing", "killed", "resetting", "hanging", "tearing", "truncating",
		"failing", "unwilling", "slow", "garbling",
	}[f]
}

const (
	// Every so often an upstream gets a fault, for so long. Before the first one,
	// there are jobs enough for the budget of retries.
	faultEvery = 3 * time.Second
	faultFor   = 2 * time.Second
)

// misfortune gives upstreams faults, one at a time and all by turns, until ctx ends.
func misfortune(ctx context.Context, upstreams []*faulty, rng *rand.Rand) {
	due := time.NewTicker(faultEvery)
	defer due.Stop()
	var turn []int
	for {
		select {
		case <-due.C:
		case <-ctx.Done():
			return
		}
		if len(turn) == 0 {
			turn = rng.Perm(int(faults) - 1)
		}
		u, f := upstreams[rng.IntN(len(upstreams))], fault(turn[0]+1)
		turn = turn[1:]
		u.set(f)
		select {
		case <-time.After(faultFor):
		case <-ctx.Done():
		}
		u.set(healthy)
	}
}
