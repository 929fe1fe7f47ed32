package pool

import "time"

// unread is how long an upstream still reads texts before it begins with another one, in seconds: it reads one after
// the other. What this sidecar's own jobs need is known. Of others, reports tell only how many there are.
type unread struct {
	jobs   int     // of this sidecar that are not answered
	own    float64 // what they take
	others float64 // what jobs of others took, by the last report
	all    float64 // what all take, at that instant
	at     time.Time
	told   time.Time // the instant of the last report
	read   float64   // bytes, by the last report
	head   float64   // what the text took of which reading began last
	began  time.Time // about when that was
	gap    float64   // jobs that ended before they began: they look as if they had not begun
}

// left is what is left of it at an instant.
func (u *unread) left(now time.Time) float64 {
	return min(max(u.own, u.all-now.Sub(u.at).Seconds()), u.own+u.others)
}

// claim adds a job.
func (u *unread) claim(now time.Time, seconds float64) {
	u.all, u.at = u.left(now)+seconds, now
	u.own += seconds
	u.jobs++
}

// answered takes a job out whose answer begins. What came before it has been read, however long it was thought to take.
func (u *unread) answered(claimed time.Time, seconds float64) {
	u.end(seconds)
	if !u.told.After(claimed) {
		u.others = 0
	}
}

// end takes a job out that ended without an answer.
func (u *unread) end(seconds float64) {
	u.own -= seconds
	if u.jobs--; u.jobs == 0 {
		u.own = 0 // not what rounding leaves
	}
}

// report takes in how many jobs an upstream has not begun to answer; those of others take so long each. If it tells how
// many began, the one that it reads counts; else only those that are stalled do. If it tells how much it began to read,
// what is left of that one is known.
func (u *unread) report(r Report, each float64, texts *fetchModel) {
	jobs, present := sum(r.Stalled), sum(r.Running)+sum(r.Stalled)
	if r.Begun > 0 && r.Completed >= 0 {
		waits := r.Completed + present - r.Begun
		if present == 0 {
			u.gap = waits
		}
		jobs = min(max(jobs, waits-u.gap), present)
	}
	if more := r.Read - u.read; more > 0 && u.read > 0 {
		u.head, u.began = texts.expected(more), u.told.Add(r.At.Sub(u.told)/2)
	}
	u.read = r.Read
	others := max(jobs-float64(u.jobs), 0)
	if u.others = others * each; others > 0 && u.head > 0 {
		u.others += max(u.head-r.At.Sub(u.began).Seconds(), u.head/10) - each
	}
	u.all, u.at, u.told = u.own+u.others, r.At, r.At
}
