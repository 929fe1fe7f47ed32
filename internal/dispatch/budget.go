package dispatch

import "time"

const (
	budgetWindow = 10 // seconds
	// budgetFloor is how many retries any second may see whatever the share:
	// too few to be a storm, and enough for a quiet sidecar to go around an
	// upstream that died until its breaker opens.
	budgetFloor = 3
)

// budget bounds retries to a share of the jobs of the last seconds, so that
// retries do not make an outage worse. The zero value has seen no job.
type budget struct {
	seconds [budgetWindow]struct{ jobs, retries int }
	start   time.Time
	last    int64 // the second, since a window before start, counted in seconds[last%budgetWindow]
}

// job counts a job.
func (b *budget) job(now time.Time) { b.seconds[b.advance(now)].jobs++ }

// take counts a retry, if the share allows it.
func (b *budget) take(now time.Time, share float64) bool {
	i := b.advance(now)
	jobs, retries := 0, 0
	for _, s := range b.seconds {
		jobs, retries = jobs+s.jobs, retries+s.retries
	}
	if b.seconds[i].retries >= budgetFloor && float64(retries+1) > share*float64(jobs) {
		return false
	}
	b.seconds[i].retries++
	return true
}

// advance forgets the seconds that left the window and returns the index of now's.
func (b *budget) advance(now time.Time) int64 {
	if b.start.IsZero() {
		b.start = now.Add(-time.Duration(now.Nanosecond())) // a whole second
	}
	second := int64(now.Sub(b.start)/time.Second) + budgetWindow // steady when the wall clock is set
	for b.last = max(b.last, second-budgetWindow); b.last < second; {
		b.last++
		b.seconds[b.last%budgetWindow] = struct{ jobs, retries int }{}
	}
	return b.last % budgetWindow
}
