package pool

import (
	"fmt"
	"slices"
	"time"
)

// Reason is why an upstream gets no new job now. The reasons are ordered by severity. A claim considers the upstreams
// with the least severe reason, if upstreams with that reason get jobs at all.
type Reason uint8

// The values of Reason.
const (
	// Eligible: there is no reason, so the upstream can get jobs.
	Eligible Reason = iota
	// Ordinary: the job is heavy, and the upstream is not for heavy jobs. It gets the job if no dedicated one is eligible.
	Ordinary
	// Shedding: it has just refused a job for load. It gets jobs if no other upstream is eligible.
	Shedding
	// NotAdmitted: overload detection refuses the job's project and priority. The job waits.
	NotAdmitted
	// Overloaded: overload detection refuses all jobs. The job waits.
	Overloaded
	// Suspect: it accepts jobs but does not respond. It gets a job only if there is no other upstream to wait for.
	Suspect
	// Shut: its breaker is open, or half open with a trial job in flight. It gets jobs if this is true of all
	// upstreams: panic mode.
	Shut
	// Tried: the job has tried it.
	Tried
	// Stopping: it stops within StopNotice. It gets jobs if all upstreams stop or drain.
	Stopping
	// Drains: discovery drains it. It gets jobs if all upstreams stop or drain.
	Drains
	// Drained: an operator drains it. It gets jobs if all upstreams stop or drain.
	Drained
	// Dedicated: it is for heavy jobs, and the job is not heavy.
	Dedicated
	// Elsewhere: the job is restricted to other upstreams.
	Elsewhere
)

// StopNotice is how long before its stop an upstream gets no new jobs: the notice that pre-emptible machines get.
const StopNotice = 30 * time.Second

var reasons = [...]string{
	Ordinary: "not for heavy jobs", Dedicated: "for heavy jobs",
	Shedding: "refused for load", NotAdmitted: "not admitted", Overloaded: "overloaded", Suspect: "suspect", Shut: "breaker open",
	Tried: "tried", Stopping: "stopping", Drains: "draining", Drained: "drained by hand", Elsewhere: "elsewhere",
}

// getsJobs reports whether upstreams with this reason get jobs if no upstream has a less severe reason.
func (r Reason) getsJobs() bool {
	return r == Eligible || r == Ordinary || r == Shedding || r == Suspect
}

// String returns the reason in the words of logs and the admin port; "" for Eligible.
func (r Reason) String() string { return reasons[r] }

// MarshalText returns String.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reverses MarshalText.
func (r *Reason) UnmarshalText(text []byte) error {
	i := slices.Index(reasons[:], string(text))
	if i < 0 {
		return fmt.Errorf("%q is no reason", text)
	}
	*r = Reason(i)
	return nil
}
