package proxy

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pilotfish/internal/admission"
	"pilotfish/internal/job"
	"pilotfish/internal/pool"
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
		outcome job.Outcome
	}{
		{errMalformed, 400, "malformed-job", job.Rejected},
		{errFraming, 400, "malformed-body", job.Rejected},
		{errTarget, 400, "bad-target", job.Rejected},
		{errCrossSite, 403, "cross-site", job.Rejected},
		{errForeignHost, 403, "foreign-host", job.Rejected},
		{errMethod, 405, "method-refused", job.Rejected},
		{errSlow, 408, "slow-body", job.Rejected},
		{job.ErrTooLarge, 413, "body-too-large", job.TooLarge},
		{errGone, 499, "submitter-gone", job.Gone},
		{errUpgrade, 501, "upgrade-refused", job.Rejected},
		{errNoAnswer, 502, "no-answer", job.NoAnswer},
		{pool.ErrAllTried, 502, "no-answer", job.NoAnswer},
		{admission.ErrFull, 503, "queue-full", job.Shed},
		{admission.ErrWaited, 503, "none-eligible", job.Shed},
		{pool.ErrEmpty, 503, "none-eligible", job.Shed},
		{pool.ErrNoneEligible, 503, "none-eligible", job.Shed},
		{ErrShutdown, 503, "shutting-down", job.Shed},
		{errDeadline, 504, "deadline", job.Deadline},
		{fmt.Errorf("%w: up:1: %w", errNoAnswer, errFirstByte), 504, "deadline", job.Deadline},
		{assert.AnError, 500, "internal", job.Broken},
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
