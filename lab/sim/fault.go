package sim

import "time"

// FaultKind is what is wrong with an upstream.
type FaultKind string

const (
	// hung: it accepts connections and answers nothing. What runs there stands
	// still, and it does not report.
	hung FaultKind = "hung"
	// slow: joblets that begin last Factor times as long.
	slow FaultKind = "slow"
	// failing: it answers each job with an error at once, and looks idle.
	failing FaultKind = "failing"
)

// Fault is what one upstream suffers for a time.
type Fault struct {
	Kind     FaultKind
	Upstream int // its number
	// At is when it begins, For how long it lasts; 0 is to the end.
	At, For time.Duration
	// Factor is how many times as long joblets last when slow.
	Factor float64
}

// end is when the fault is over for good.
func (v *Fault) end() time.Duration {
	if v.For == 0 {
		return never
	}
	return v.At + v.For
}

// active says whether the fault is there at an instant.
func (v *Fault) active(now time.Duration) bool { return now >= v.At && now < v.end() }

// spent is for how long the fault was active before an instant.
func (v *Fault) spent(now time.Duration) time.Duration { return max(0, min(now, v.end())-v.At) }
