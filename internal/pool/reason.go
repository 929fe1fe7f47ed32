package pool

import (
	"fmt"
	"slices"
	"time"
)

// Reason is why an upstream gets no new job now. They are in order: a claim takes the upstreams with the
// least reason against them, if that allows it.
type Reason uint8

// The reasons, a closed set.
const (
	// Eligible: there is none.
	Eligible Reason = iota
	// Ordinary: the job is heavy, and the upstream is not for heavy jobs. It is asked if no such upstream is eligible.
	Ordinary
	// Shedding: it refused a job for load a moment ago. It is asked if no other may be.
	Shedding
	// NotAdmitted: its overload level refuses the job for its project and priority.
	NotAdmitted
	// Overloaded: by a fresh report it may take no job. The job waits.
	Overloaded
	// Suspect: it takes jobs and answers none. It is asked if the others cannot be waited for either.
	Suspect
	// Shut: its breaker is open, or waits for the verdict of its probe.
	Shut
	// Tried: the job has been there.
	Tried
	// Stopping: it stops within StopNotice. It gets jobs if all stop or drain.
	Stopping
	// Drains: it leaves. It gets jobs if all stop or drain.
	Drains
	// Drained: an operator keeps jobs away, unless all drain.
	Drained
	// Dedicated: it is for heavy jobs, and the job is not heavy.
	Dedicated
	// Elsewhere: it is none of those that the job may go to.
	Elsewhere
)

// StopNotice is how long before it stops an upstream gets no new jobs: the notice of pre-emptible virtual machines.
const StopNotice = 30 * time.Second

var reasons = [...]string{
	Ordinary: "not for heavy jobs", Dedicated: "for heavy jobs",
	Shedding: "refused for load", NotAdmitted: "not admitted", Overloaded: "overloaded", Suspect: "suspect", Shut: "breaker open",
	Tried: "tried", Stopping: "stopping", Drains: "draining", Drained: "drained by hand", Elsewhere: "elsewhere",
}

// String returns the words in logs and in the admin interface; "" for Eligible.
func (r Reason) String() string { return reasons[r] }

// MarshalText returns the same words.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText takes those words.
func (r *Reason) UnmarshalText(text []byte) error {
	i := slices.Index(reasons[:], string(text))
	if i < 0 {
		return fmt.Errorf("%q is no reason", text)
	}
	*r = Reason(i)
	return nil
}
