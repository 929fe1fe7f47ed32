package report

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	jitter     = 0.2 // share by which an interval may be longer or shorter
	firstShare = 0.1 // share of an interval within which the first poll comes

	// checkTime is how long a check may take, and how long after the start of a poll that
	// failed the next one begins. After maxChecks of them the polls are as rare as others.
	checkTime = time.Second
	maxChecks = 3
)

// every calls ask repeatedly until ctx is done, with a pause between the starts. It is
// called at once when early tells so, and soon after a call that returned true; such
// calls are checks.
func every(ctx context.Context, interval time.Duration, rng *rand.Rand, early <-chan struct{}, ask func(ctx context.Context, check bool) (soon bool)) {
	timer := time.NewTimer(pause(0, interval, rng))
	defer timer.Stop()
	soon := false
	for n := 1; ; n++ {
		check := soon
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-early:
			check = true
		}
		start := time.Now()
		soon = ask(ctx, check)
		next := pause(n, interval, rng)
		if soon {
			next = min(next, checkTime)
		}
		timer.Reset(next - time.Since(start))
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
