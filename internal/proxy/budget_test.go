package proxy

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/admission"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
)

// The budget against a list of everything that ever happened.
func TestRetryBudgetAgainstANaiveOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		b := retryBudget{share: []float64{0.2, 0.5, 1}[rng.IntN(3)]}
		var jobs, retries []int64 // the second of each
		since := func(seconds []int64, first int64) (n int) {
			for _, s := range seconds {
				if s >= first {
					n++
				}
			}
			return n
		}
		now := time.Unix(1_000_000+rng.Int64N(100), 0)
		for range 2000 {
			now = now.Add(time.Duration(rng.ExpFloat64() * float64(20*time.Millisecond)))
			if rng.IntN(500) == 0 {
				now = now.Add(time.Duration(rng.IntN(30)) * time.Second)
			}
			second := now.Unix()
			if rng.IntN(3) > 0 {
				b.job(now)
				jobs = append(jobs, second)
				continue
			}
			first := second - retryWindow + 1
			want := since(retries, second) < retryFloor ||
				float64(since(retries, first)+1) <= b.share*float64(since(jobs, first))
			require.Equal(t, want, b.take(now))
			if want {
				retries = append(retries, second)
			}
		}
	}
}

func TestRetryBudgetOfAClockThatGoesBack(t *testing.T) {
	b := retryBudget{share: 0.2}
	now := time.Unix(1_000_000, 0)
	for range retryFloor {
		require.True(t, b.take(now))
	}
	require.False(t, b.take(now.Add(-time.Hour)), "the past is counted as the present")
	require.True(t, b.take(now.Add(time.Second)))
}

func TestBackoffIsFullJitter(t *testing.T) {
	for range 200 {
		b := newBackoff()
		for _, most := range []int{25, 50, 100, 200, 250, 250} {
			d := b.NextBackOff()
			require.GreaterOrEqual(t, d, time.Duration(0))
			require.LessOrEqual(t, d, time.Duration(most)*time.Millisecond+1)
		}
	}
}

func TestEveryErrorHasItsStatus(t *testing.T) {
	for _, tc := range []struct {
		err     error
		status  int
		reason  string
		outcome intake.Outcome
	}{
		{errMalformed, 400, "malformed-job", intake.Rejected},
		{errFraming, 400, "malformed-body", intake.Rejected},
		{errTarget, 400, "bad-target", intake.Rejected},
		{errCrossSite, 403, "cross-site", intake.Rejected},
		{errForeignHost, 403, "foreign-host", intake.Rejected},
		{errMethod, 405, "method-refused", intake.Rejected},
		{errSlow, 408, "slow-body", intake.Rejected},
		{intake.ErrTooLarge, 413, "body-too-large", intake.TooLarge},
		{errGone, 499, "submitter-gone", intake.Gone},
		{errUpgrade, 501, "upgrade-refused", intake.Rejected},
		{errNoAnswer, 502, "no-answer", intake.NoAnswer},
		{pool.ErrAllTried, 502, "no-answer", intake.NoAnswer},
		{admission.ErrFull, 503, "queue-full", intake.Shed},
		{admission.ErrWaited, 503, "none-eligible", intake.Shed},
		{pool.ErrEmpty, 503, "none-eligible", intake.Shed},
		{pool.ErrNoneEligible, 503, "none-eligible", intake.Shed},
		{ErrShutdown, 503, "shutting-down", intake.Shed},
		{errDeadline, 504, "deadline", intake.Deadline},
		{fmt.Errorf("%w: up:1: %w", errNoAnswer, errFirstByte), 504, "deadline", intake.Deadline},
		{assert.AnError, 500, "internal", intake.Broken},
	} {
		p := problemOf(fmt.Errorf("more about it: %w", tc.err))
		assert.Equal(t, tc.status, p.Status, tc.err)
		assert.Equal(t, tc.reason, p.reason)
		assert.Equal(t, "urn:pilotfish:problem:"+tc.reason, p.Type)
		assert.Equal(t, tc.outcome, p.outcome)
		assert.Contains(t, p.Detail, tc.err.Error())
		assert.NotEmpty(t, p.Title)
	}
}
