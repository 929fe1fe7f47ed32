package sim

import (
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/pkg/selection"
)

// Result is how one job ended, as its submitter saw it.
type Result struct {
	Number   int64 // the job's line in the trace
	Project  uint64
	Priority selection.Priority
	Prefetch bool
	Arrived  time.Duration
	// Wait is the time from the job's arrival at the sidecar to the start of its execution, so it includes the
	// sidecar's queue. Run is the time from there to the job's end. For a job without a result (Lost, Unserved,
	// Failed, Left), Wait is at least its queue timeout: otherwise an upstream that fails at once would look best.
	Wait, Run time.Duration
	// Stalled is the part of Run in which none of the job's joblets ran, because other joblets had the cores.
	Stalled time.Duration
	// FirstByte and LastByte are the times from the job's arrival to the first and the last
	// byte of its response, as its submitter sees them (N. J. Turner's thesis, 3.3). FirstByte
	// is negative if there was no response. Completeness is how much of it arrived.
	FirstByte, LastByte time.Duration
	Completeness        intake.Completeness
	Server              int // index of the server; negative if the job reached none
	Attempts            int
	Fetched             bool // it caused a fetch of its project's data
	Outcome             Outcome
}

// Outcome is how a job ended in a simulation.
type Outcome uint8

// The outcomes of a simulated job.
const (
	Done     Outcome = iota
	Expired          // its queue timeout passed
	Overrun          // its first-byte or stream timeout passed
	Lost             // its upstream stopped, and no attempt was left
	Unserved         // no upstream could be reached
	Failed           // the response was an error, or empty
	Left             // the person cancelled it
)

// Totals are the totals of a run.
type Totals struct {
	Length             time.Duration // from the end of the warm-up to the last job's end
	Arrivals, Ended    int
	Fetches, Evictions int
	CoreSeconds        float64
	Reports, Probes    int
	InFlight, Waiting  int // jobs left at the end
	Stops              int // stops of servers
	Hedged             int // copies of jobs sent
	Withdrawn, Refused int // requests to withdraw jobs, by their result
}
