package report

import (
	"context"
	"math/rand/v2"
	"time"
)

// pace is the time of the next poll.
type pace uint8

const (
	usual  pace = iota // after the interval
	soon               // after checkTime: the poll is a check
	rarely             // after rareTime
)

const (
	jitter     = 0.2 // share by which an interval may be longer or shorter
	firstShare = 0.1 // share of an interval within which the first poll comes

	// checkTime is how long a check may take, and how long after the start of a poll that
	// failed the next one begins. After maxChecks of them the polls are as rare as others.
	checkTime = time.Second
	maxChecks = 3

	// rareTime is how often an upstream is asked that answers and has never reported,
	// after maxTries polls.
	rareTime = time.Minute
	maxTries = 3
)

// every calls ask repeatedly until ctx is done, with a pause between the starts, which
// the call before chooses. It is called at once when early says so; such a call is a check.
func every(ctx context.Context, interval time.Duration, rng *rand.Rand, early <-chan struct{}, ask func(ctx context.Context, check bool) pace) {
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
		next := ask(ctx, check)
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
// The first poll comes soon, because a sidecar without a report chooses blindly.
// The second comes anywhere within an interval, so that sidecars that learnt of
// an upstream together do not ask it together from then on. The jitter keeps
// them apart.
func pause(n int, interval time.Duration, rng *rand.Rand) time.Duration {
	share := rng.Float64()
	switch n {
	case 0:
		share *= firstShare
	case 1:
		// as it is: a random phase
	default:
		share = 1 - jitter + 2*jitter*share
	}
	return time.Duration(share * float64(interval))
}
