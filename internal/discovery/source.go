package discovery

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
)

// origin is a source of upstreams, its name, and the minimum interval between queries.
type origin struct {
	// ask returns every upstream that the source knows, with canonical
	// addresses. It may block until the list changes, but no longer than atMost
	// if that is positive, and it returns early when ctx is done. An error means
	// that there is no reply, which is not the same as an empty one. It is a clause
	// that names the source.
	ask  func(ctx context.Context, atMost time.Duration) (reply, error)
	name string
	gap  time.Duration // from one query to the next, at least
}

// errLate is the error of a query that timed out.
var errLate = errors.New("timeout")

// reply is the result of a query.
type reply struct {
	upstreams []pool.Upstream
	none      string // why there are no upstreams, as a clause, where the source knows
	flaw      error  // why something was left out of upstreams: the same reason in any order
	flaws     int    // how many there are
}

// take adds an upstream that has an address, and notes a flaw; nil is none.
func (r *reply) take(u pool.Upstream, flaw error) {
	if u.Address != "" {
		r.upstreams = append(r.upstreams, u)
	}
	r.leaveOut(flaw)
}

// leaveOut records a flaw; nil is ignored.
func (r *reply) leaveOut(err error) {
	if err == nil {
		return
	}
	if r.flaws++; r.flaws == 1 || err.Error() < r.flaw.Error() {
		r.flaw = err
	}
}

func (s *Settings) openStatic(*Config) (origin, error) {
	var all reply
	for _, a := range s.Static {
		address, err := settings.Address(a)
		all.take(pool.Upstream{Address: address}, err)
	}
	ask := func(context.Context, time.Duration) (reply, error) { return all, nil }
	return origin{ask, "static list", 24 * time.Hour}, nil
}

const (
	// shortest is the shortest gap, and the first pause after a failure.
	shortest = time.Second
	// longestRetry bounds the pause after failures, but for a source that has a longer gap.
	longestRetry = 5 * time.Second
	// spread is the share by which a pause may be longer, at random, so that
	// many sidecars do not ask at the same time.
	spread = 0.2
)

// pacer decides when to query next. It has no clock.
type pacer struct {
	gap   time.Duration // from one query to the next
	rng   *rand.Rand
	asked time.Time     // when the last query was due
	retry time.Duration // the pause after the last failure; 0 after a reply
}

// pause plans the next query at now, after one that failed or not, and returns
// how long to wait for it: for a gap since the last one, or twice as long as after the last failure.
// A positive soon bounds that wait, but it is never less than the shortest gap.
func (p *pacer) pause(now time.Time, failed bool, soon time.Duration) time.Duration {
	wait := p.asked.Add(p.spread(p.gap)).Sub(now)
	if soon > 0 {
		wait = min(wait, max(soon, shortest))
	}
	if failed {
		p.retry = max(shortest, min(2*p.retry, longestRetry))
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
