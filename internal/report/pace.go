package report

import (
	"context"
	"math/rand/v2"
	"time"
)

// pace is how soon the next poll follows.
type pace uint8

const (
	usual  pace = iota // after the interval
	soon               // after checkTime; the next poll is a check
	rarely             // after rareTime
)

const (
	jitter     = 0.2 // maximum random change of an interval, as a share of the interval
	firstShare = 0.1 // the first poll is within this share of an interval

	// checkTime is the timeout of a check, and the interval between the starts of a failed poll and the next one. After
	// maxChecks checks in a row, polls follow in the usual interval again.
	checkTime = time.Second
	maxChecks = 3

	// rareTime is the interval for an upstream that responds but has never reported,
	// after maxTries polls.
	rareTime = time.Minute
	maxTries = 3
)

// every calls poll repeatedly until ctx is done. Each call returns how soon the next one
// starts. A value in early starts a call at once; that call is a check.
func every(ctx context.Context, interval time.Duration, rng *rand.Rand, early <-chan struct{}, poll func(ctx context.Context, check bool) pace) {
	timer := time.NewTimer(pause(0, interval, rng))
	defer timer.Stop()
	check := false
	for n := 1; ; {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-early:
			check = true
		}
		start := time.Now()
		next := poll(ctx, check)
		wait := pause(n, interval, rng)
		switch next {
		case soon:
			wait = min(wait, checkTime)
		case rarely:
			wait = max(wait, pause(n, rareTime, rng))
		}
		if check = next == soon; !check {
			n++
		}
		timer.Reset(wait - time.Since(start))
	}
}

// pause returns the time from the start of poll number n to the start of the
// next. Before the first poll, n is 0.
//
// The first poll is early, because a sidecar without a report does not know the load.
// The second is at a random time within an interval, so that sidecars that discovered
// an upstream at the same time do not poll it at the same time from then on. The
// jitter keeps them apart.
func pause(n int, interval time.Duration, rng *rand.Rand) time.Duration {
	share := rng.Float64()
	switch n {
	case 0:
		share *= firstShare
	case 1:
		// anywhere in the interval: a random phase
	default:
		share = 1 - jitter + 2*jitter*share
	}
	return time.Duration(share * float64(interval))
}
