package discovery

import (
	"math/rand/v2"
	"time"
)

// pace is how often a source may be asked.
type pace struct {
	gap      time.Duration // from one query to the next
	saved    int           // queries that an idle time saves up
	retryMax time.Duration // the longest pause after failures
}

const (
	// shortest is the shortest gap, and the first pause after a failure.
	shortest = time.Second
	// longestRetry bounds the pause after failures.
	longestRetry = 10 * time.Second
	// spread is the share by which a pause may be longer, at random, so that
	// many sidecars do not ask at the same time.
	spread = 0.2
)

// pacer says when to ask next. It is a value without a clock: a bucket of at
// most 1+saved queries that gains one every gap, and a doubling pause after failures.
type pacer struct {
	pace  pace
	rng   *rand.Rand
	slot  time.Time     // when the next query is due
	retry time.Duration // the pause after the last failure; 0 after a reply
}

// pause plans the next query at now, after one that failed or not, and returns
// how long to wait for it. A positive soon bounds that wait, but it is never
// less than the shortest gap.
func (p *pacer) pause(now time.Time, failed bool, soon time.Duration) time.Duration {
	slot := later(p.slot, now.Add(-time.Duration(p.pace.saved)*p.pace.gap))
	if soon > 0 {
		slot = earlier(slot, now.Add(max(soon, shortest)))
	}
	if failed {
		p.retry = max(shortest, min(2*p.retry, p.pace.retryMax))
		slot = later(slot, now.Add(p.spread(p.retry)))
	} else {
		p.retry = 0
	}
	p.slot = slot.Add(p.spread(p.pace.gap))
	return max(0, slot.Sub(now))
}

func (p *pacer) spread(d time.Duration) time.Duration {
	return d + time.Duration(spread*p.rng.Float64()*float64(d))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
