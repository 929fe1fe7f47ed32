package proxy

import (
	"context"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// rule says whether an attempt that failed may be followed by another.
type rule uint8

const (
	never rule = iota
	// once: an upstream may have begun the job. Processing is pure, so it may
	// be repeated, but a job that kills upstreams must not tour them all.
	once
	// always: no upstream can have begun it.
	always
)

// mayRetry decides whether the attempt that failed is followed by another,
// and if so counts that.
func (x *exchange) mayRetry(f *failure) bool {
	switch {
	case len(x.tried) >= x.p.cfg.Attempts,
		f.rule == never,
		f.rule == once && x.spent,
		!x.deadline.IsZero() && !time.Now().Before(x.deadline),
		!x.body.Replayable():
		return false
	}
	if !x.p.retries.take(time.Now()) {
		x.record.RetryRefused = true
		return false
	}
	x.spent = x.spent || f.rule == once
	if f.noConnect {
		x.connect *= 2
	}
	return true
}

// pause waits before the next attempt: not at all before the second, which
// goes elsewhere, then longer at random.
func (x *exchange) pause(ctx context.Context, b *backoff.ExponentialBackOff) error {
	if len(x.tried) < 2 {
		return nil
	}
	timer := time.NewTimer(b.NextBackOff())
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// newBackoff draws pauses between 0 and 25 ms, 50 ms ... 250 ms ("full
// jitter"): the library varies an interval by up to its whole length.
func newBackoff() *backoff.ExponentialBackOff {
	return &backoff.ExponentialBackOff{
		InitialInterval:     25 * time.Millisecond / 2,
		MaxInterval:         250 * time.Millisecond / 2,
		Multiplier:          2,
		RandomizationFactor: 1,
	}
}

const (
	retryWindow = 10 // seconds
	// retryFloor is how many retries any second may see whatever the share: too
	// few to be a storm, and enough for a quiet sidecar to go around an
	// upstream that died until its breaker opens.
	retryFloor = 3
)

// retryBudget bounds retries to a share of the jobs of the last seconds, so
// that an outage is not made worse by asking thrice.
type retryBudget struct {
	share float64

	mu      sync.Mutex
	seconds [retryWindow]struct{ jobs, retries int }
	start   time.Time
	last    int64 // the second, since a window before start, counted in seconds[last%retryWindow]
}

// job counts a job.
func (b *retryBudget) job(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seconds[b.turn(now)].jobs++
}

// take counts a retry, if there is budget for it.
func (b *retryBudget) take(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := b.turn(now)
	jobs, retries := 0, 0
	for _, s := range b.seconds {
		jobs, retries = jobs+s.jobs, retries+s.retries
	}
	if b.seconds[i].retries >= retryFloor && float64(retries+1) > b.share*float64(jobs) {
		return false
	}
	b.seconds[i].retries++
	return true
}

// turn forgets the seconds that left the window and returns the index of now's.
func (b *retryBudget) turn(now time.Time) int64 {
	if b.start.IsZero() {
		b.start = now.Add(-time.Duration(now.Nanosecond())) // a whole second
	}
	second := int64(now.Sub(b.start)/time.Second) + retryWindow // steady when the wall clock is set
	for b.last = max(b.last, second-retryWindow); b.last < second; {
		b.last++
		b.seconds[b.last%retryWindow] = struct{ jobs, retries int }{}
	}
	return b.last % retryWindow
}
