package pool

import "time"

// unread is how long an upstream still reads texts before it begins with another one, in seconds: it reads one after
// the other. What this sidecar's own jobs need is known. Of others, reports tell only how many there are.
type unread struct {
	own float64 // of this sidecar's jobs that are not answered
	all float64 // of all jobs, at that instant
	at  time.Time
	gap float64 // jobs that ended before they began: they look as if they had not begun
}

// left is what is left of it at an instant.
func (u *unread) left(now time.Time) float64 { return max(u.own, u.all-now.Sub(u.at).Seconds(), 0) }

// claim adds a job.
func (u *unread) claim(now time.Time, seconds float64) {
	u.all, u.at = u.left(now)+seconds, now
	u.own += seconds
}

// end takes a job out whose answer begins, or that ended without one.
func (u *unread) end(seconds float64) { u.own -= seconds }

// report takes in how many jobs an upstream has not begun to answer, each of which takes so long. If it tells how many
// began, the one that it reads counts; else only those that are stalled do.
func (u *unread) report(r Report, each float64) {
	jobs, present := sum(r.Stalled), sum(r.Running)+sum(r.Stalled)
	if r.Begun > 0 && r.Completed >= 0 {
		waits := r.Completed + present - r.Begun
		if present == 0 {
			u.gap = waits
		}
		jobs = min(max(jobs, waits-u.gap), present)
	}
	u.all, u.at = jobs*each, r.At
}
