package pool

import "time"

// ledger counts this sidecar's jobs at an upstream whose answers have not begun. A report
// that tells of fewer than half of the jobs that were there all the time since the last one
// is not believed: an upstream that always looks idle would draw the jobs of all sidecars.
// Some may honestly be missing, such as those whose answers are under way.
type ledger struct {
	open    int       // jobs without an answer
	older   int       // those of them that were claimed before the last comparison
	number  uint64    // of the next comparison
	at      time.Time // the instant that the last compared report tells of
	short   int       // reports in a row that told of too few
	enough  int       // reports in a row that told of enough
	doubted bool      // the load that it tells is not believed
}

// doubtedAfter is how many reports in a row change what is believed.
const doubtedAfter = 2

// claim counts a job, and returns the number to end it with.
func (l *ledger) claim() uint64 {
	l.open++
	return l.number
}

// end counts a job's answer, or its end without one.
func (l *ledger) end(number uint64) {
	l.open--
	if number < l.number {
		l.older--
	}
}

// compare takes in a report of so many jobs. One that follows another at once proves
// nothing: the jobs may be on their way.
func (l *ledger) compare(at time.Time, jobs float64, apart time.Duration) {
	if at.Sub(l.at) < apart {
		return
	}
	switch {
	case 2*jobs < float64(l.older):
		l.short, l.enough = l.short+1, 0
	case l.older > 0:
		l.short, l.enough = 0, l.enough+1
	}
	if l.short >= doubtedAfter {
		l.doubted = true
	}
	if l.enough >= doubtedAfter {
		l.doubted = false
	}
	l.at, l.older = at, l.open
	l.number++
}

// forget drops the evidence, not the jobs.
func (l *ledger) forget() { l.short, l.enough, l.doubted = 0, 0, false }
