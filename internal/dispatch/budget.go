package dispatch

import "time"

const (
	budgetWindow = 10 // seconds
	// budgetFloor is the number of retries per second that are allowed whatever
	// the share. A sidecar with few jobs needs them to avoid a dead upstream
	// until its breaker opens; they are too few for a retry storm.
	budgetFloor = 3
)

// tally counts the new jobs and the retries of one second.
type tally struct{ jobs, retries int }

// budget bounds retries to a share of the jobs of the last seconds, so that
// retries do not make an outage worse. The zero value is ready to use.
type budget struct {
	seconds [budgetWindow]tally
	start   time.Time
	last    int64 // the newest second that has a tally: start is second budgetWindow; second n has seconds[n%budgetWindow]
}

// job counts a job.
func (b *budget) job(now time.Time) { b.seconds[b.advance(now)].jobs++ }

// take counts a retry and returns true, or returns false if the budget is used up.
func (b *budget) take(now time.Time, share float64) bool {
	if b.left(now, share) == 0 {
		return false
	}
	b.seconds[b.advance(now)].retries++
	return true
}

// left returns the number of retries that are allowed now.
func (b *budget) left(now time.Time, share float64) int {
	second, all := b.seconds[b.advance(now)], tally{}
	for _, s := range b.seconds {
		all.jobs, all.retries = all.jobs+s.jobs, all.retries+s.retries
	}
	return max(0, budgetFloor-second.retries, int(share*float64(all.jobs))-all.retries)
}

// advance clears the seconds that left the window and returns the index of the current second.
func (b *budget) advance(now time.Time) int64 {
	if b.start.IsZero() {
		b.start = now.Add(-time.Duration(now.Nanosecond())) // a whole second
	}
	second := int64(now.Sub(b.start)/time.Second) + budgetWindow // a monotonic difference: setting the wall clock does not move it
	for b.last = max(b.last, second-budgetWindow); b.last < second; {
		b.last++
		b.seconds[b.last%budgetWindow] = tally{}
	}
	return b.last % budgetWindow
}
