package dispatch

import (
	"maps"
	"time"
)

// rates limits the jobs per minute of each project with a token bucket that holds one minute's jobs.
// It uses the generic cell rate algorithm, which stores one instant per bucket.
type rates struct {
	full  map[uint64]time.Time // by project: when the bucket is full again
	swept int                  // buckets left after the last sweep
}

// sweepFrom is the number of buckets up to which no sweep is made. A sweep drops the full buckets.
const sweepFrom = 1024

// take takes a token for a job of the project. If the bucket is empty, it returns the time until the next token.
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
	// Sweeping at twice the size after the last sweep keeps the cost per job constant. A bucket that is not full
	// had a job within the last minute, so the map holds at most about twice the projects of one minute.
	if len(r.full) > max(sweepFrom, 2*r.swept) {
		maps.DeleteFunc(r.full, func(_ uint64, full time.Time) bool { return !full.After(now) })
		r.swept = len(r.full)
	}
	return 0
}
