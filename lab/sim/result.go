package sim

import (
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/pkg/selection"
)

// Result is how one job ended, as its submitter saw it.
type Result struct {
	Number   int64 // its line in the trace
	Project  uint64
	Priority selection.Priority
	Prefetch bool
	Arrived  time.Duration
	// Wait is from the job's arrival at the sidecar to the start of its execution, so that time in the sidecar's
	// queue is not hidden; Run is from there to its end. A job without a result, because it was Lost, Unserved, or
	// Failed, has waited at least as long as it may wait: otherwise an upstream that fails at once would look like
	// the best.
	Wait, Run time.Duration
	// Stalled is the part of Run in which none of its joblets ran, because others went first.
	Stalled time.Duration
	// FirstByte and LastByte are from the job's arrival to the first byte of its
	// answer and to its end, as its submitter sees them (N. J. Turner's thesis, 3.3);
	// the first is negative where no answer began. Completeness says how much came.
	FirstByte, LastByte time.Duration
	Completeness        intake.Completeness
	Server              int // index; negative when it reached none
	Attempts            int
	Fetched             bool // it caused a fetch of its project's data
	Outcome             Outcome
}

// Outcome is how a job ended in a simulation.
type Outcome uint8

// The outcomes of a simulated job.
const (
	Done     Outcome = iota
	Expired          // its own bound on waiting passed
	Overrun          // its own bound on running passed
	Lost             // its upstream went away and no attempt was left
	Unserved         // no upstream could be reached
	Failed           // the answer was an error, or empty
	Left             // its person lost patience
)

// Totals are counted over a whole run.
type Totals struct {
	Length             time.Duration // up to the last job's end, without the warm-up
	Arrivals, Ended    int
	Fetches, Evictions int
	CoreSeconds        float64
	Reports            int
	InFlight, Waiting  int // left at the end
	Stops              int // of servers
	Hedged             int // copies of jobs
}
