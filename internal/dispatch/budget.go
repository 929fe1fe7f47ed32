package dispatch

import "time"

const (
	budgetWindow = 10 // seconds
	// budgetFloor is how many retries any second may see whatever the share:
	// too few to be a storm, and enough for a quiet sidecar to go around an
	// upstream that died until its breaker opens.
	budgetFloor = 3
)

// tally is what happened in one second.
type tally struct{ jobs, retries int }

// budget bounds retries to a share of the jobs of the last seconds, so that
// retries do not make an outage worse. The zero value has seen no job.
type budget struct {
	seconds [budgetWindow]tally
	start   time.Time
	last    int64 // the second, since a window before start, counted in seconds[last%budgetWindow]
}

// job counts a job.
func (b *budget) job(now time.Time) { b.seconds[b.advance(now)].jobs++ }

// take counts a retry, if the share allows it.
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

// advance forgets the seconds that left the window and returns the index of now's.
func (b *budget) advance(now time.Time) int64 {
	if b.start.IsZero() {
		b.start = now.Add(-time.Duration(now.Nanosecond())) // a whole second
	}
	second := int64(now.Sub(b.start)/time.Second) + budgetWindow // steady when the wall clock is set
	for b.last = max(b.last, second-budgetWindow); b.last < second; {
		b.last++
		b.seconds[b.last%budgetWindow] = tally{}
	}
	return b.last % budgetWindow
}
