package dispatch

import "time"

// rates limits the jobs per minute of each project with a token bucket that holds one minute's jobs.
// It uses the generic cell rate algorithm, which stores one instant per bucket. A bucket is full a minute after its
// last job at the latest, so it is kept for one to two minutes.
type rates struct {
	young, old map[uint64]time.Time // by project: when the bucket is full again
	since      time.Time            // when young was empty
}

// take takes a token for a job of the project. If the bucket is empty, it returns the time until the next token.
func (r *rates) take(now time.Time, project uint64, perMinute int) (after time.Duration) {
	if r.young == nil || now.Sub(r.since) >= time.Minute {
		r.young, r.old, r.since = map[uint64]time.Time{}, r.young, now
	}
	full, ok := r.young[project]
	if !ok {
		full = r.old[project]
	}
	if full.Before(now) {
		full = now
	}
	if full = full.Add(time.Minute / time.Duration(perMinute)); full.Sub(now) > time.Minute {
		return full.Sub(now) - time.Minute
	}
	r.young[project] = full
	return 0
}
