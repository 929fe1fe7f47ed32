package dispatch

import (
	"maps"
	"time"
)

// rates bounds the jobs that each project submits per minute, with a token bucket of one minute's jobs
// for each project: the generic cell rate algorithm, which keeps one instant.
type rates struct {
	full  map[uint64]time.Time // when a project's bucket is full again
	swept int                  // how many were left by the last sweep
}

// sweepFrom is how many buckets may be kept before those that are full again are dropped.
const sweepFrom = 1024

// take counts a job of a project, or returns after how long its bucket has room for one.
func (r *rates) take(now time.Time, project uint64, perMinute int) (after time.Duration) {
	each := time.Minute / time.Duration(perMinute)
	full := r.full[project]
	if full.Before(now) {
		full = now
	}
	if full = full.Add(each); full.Sub(now) > time.Minute {
		return full.Sub(now) - time.Minute
	}
	if r.full == nil {
		r.full = map[uint64]time.Time{}
	}
	r.full[project] = full
	// A bucket that is not full had a job within the last minute, so twice those of a minute are kept at most.
	if len(r.full) > max(sweepFrom, 2*r.swept) {
		maps.DeleteFunc(r.full, func(_ uint64, full time.Time) bool { return !full.After(now) })
		r.swept = len(r.full)
	}
	return 0
}
