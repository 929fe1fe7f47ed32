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
	last    int64 // the newest second, counted from one window before start; its tally is seconds[last%budgetWindow]
}

// job counts a job.
func (b *budget) job(now time.Time) { b.seconds[b.advance(now)].jobs++ }

// take counts a retry and returns true, or returns false if the budget is used up.
func (b *budget) take(now time.Time, share float64) bool {
	second, all := &b.seconds[b.advance(now)], tally{}
	for _, s := range b.seconds {
		all.jobs, all.retries = all.jobs+s.jobs, all.retries+s.retries
	}
	ok := second.retries < budgetFloor || float64(all.retries+1) <= share*float64(all.jobs)
	if ok {
		second.retries++
	}
	return ok
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
