package discovery

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
)

// source is where upstreams come from, such as a service of Consul.
type source struct {
	// query returns the full list of upstreams, with canonical addresses. It can
	// block until the list changes, at most for atMost if that is positive, and
	// until ctx is done. An error means that the query failed, which differs from
	// an empty list. Its text names the source.
	query func(ctx context.Context, atMost time.Duration) (reply, error)
	name  string
	gap   time.Duration // minimum interval between queries
}

// errTimeout is the error of a query that takes too long.
var errTimeout = errors.New("timeout")

// reply is the result of a query.
type reply struct {
	upstreams   []pool.Upstream
	emptyReason string // why upstreams is empty, if the source gives a reason
	skipReason  error  // why an entry was skipped; of several reasons the first alphabetically
	skipped     int    // number of skipped entries
}

// add adds u if it has an address, and records err if it is not nil.
func (r *reply) add(u pool.Upstream, err error) {
	if u.Address != "" {
		r.upstreams = append(r.upstreams, u)
	}
	r.skip(err)
}

// skip records why an entry was skipped. A nil err is ignored.
func (r *reply) skip(err error) {
	if err == nil {
		return
	}
	if r.skipped++; r.skipped == 1 || err.Error() < r.skipReason.Error() {
		r.skipReason = err
	}
}

func (s *Settings) openStatic(*Config) (source, error) {
	var all reply
	for _, a := range s.Static {
		address, err := settings.Address(a)
		all.add(pool.Upstream{Address: address}, err)
	}
	query := func(context.Context, time.Duration) (reply, error) { return all, nil }
	return source{query, "static list", 24 * time.Hour}, nil
}

const (
	// shortest is the shortest gap between two queries, and the first back-off after a failure.
	shortest = time.Second
	// longestRetry is the maximum back-off after failures. If the gap is longer, the gap is used instead.
	longestRetry = 5 * time.Second
	// spread is the maximum random extension of a pause, as a share of the pause. It
	// prevents many sidecars from sending queries at the same time.
	spread = 0.2
)

// pacer decides when to query next. It has no clock.
type pacer struct {
	gap   time.Duration // between queries
	rng   *rand.Rand
	asked time.Time     // when the last query was due
	retry time.Duration // the back-off after the last failure; 0 after a success
}

// pause schedules the next query and returns how long to wait for it: until a gap
// has passed since the last query was due. If soon is positive, the wait is at most the longer of soon and
// shortest. If the last query failed, the wait is at least the back-off.
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
