package report

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	jitter = 0.2 // share by which an interval may be longer or shorter
	hurry  = 0.1 // share of an interval within which the first poll comes
)

// every has ask ask, over and over, until ctx is done.
func every(ctx context.Context, interval time.Duration, rng *rand.Rand, ask func(context.Context)) {
	timer := time.NewTimer(pace(0, interval, rng))
	defer timer.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		start := time.Now()
		ask(ctx)
		timer.Reset(pace(n, interval, rng) - time.Since(start))
	}
}

// pace returns the time from the start of poll number n to that of the next;
// before the first poll, n is 0 and it starts from the moment the upstream is
// followed.
//
// The first poll comes soon, because a sidecar that has no report yet chooses
// blindly. The second comes anywhere within an interval, so that sidecars
// that learnt of an upstream together do not ask it together ever after; the
// jitter keeps them apart.
func pace(n int, interval time.Duration, rng *rand.Rand) time.Duration {
	share := rng.Float64()
	switch n {
	case 0:
		share *= hurry
	case 1:
		// as it is: a random phase
	default:
		share = 1 - jitter + 2*jitter*share
	}
	return time.Duration(share * float64(interval))
}
