package discovery

import (
	"math/rand/v2"
	"time"
)

// pace is how often a source may be asked.
type pace struct {
	gap      time.Duration // from one query to the next
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

// pacer says when to ask next. It is a value without a clock.
type pacer struct {
	pace  pace
	rng   *rand.Rand
	asked time.Time     // when the last query was due
	retry time.Duration // the pause after the last failure; 0 after a reply
}

// pause plans the next query at now, after one that failed or not, and returns
// how long to wait for it: for a gap since the last one, or twice as long as after the last failure.
// A positive soon bounds that wait, but it is never less than the shortest gap.
func (p *pacer) pause(now time.Time, failed bool, soon time.Duration) time.Duration {
	wait := p.asked.Add(p.spread(p.pace.gap)).Sub(now)
	if soon > 0 {
		wait = min(wait, max(soon, shortest))
	}
	if failed {
		p.retry = max(shortest, min(2*p.retry, p.pace.retryMax))
		wait = max(wait, p.spread(p.retry))
	} else {
		p.retry = 0
	}
	wait = max(wait, 0)
	p.asked = now.Add(wait)
	return wait
}

func (p *pacer) spread(d time.Duration) time.Duration {
	return d + time.Duration(spread*p.rng.Float64()*float64(d))
}
