package ruleserver

import (
	"time"

	"example.org/pilotfish/internal/ruleserver/executor"
)

// Outcome is how a job ended.
type Outcome string

const (
	OK        Outcome = "ok"
	Failed    Outcome = "failed"
	Cancelled Outcome = "cancelled" // its submitter went away
	Timeout   Outcome = "timeout"
	Rejected  Outcome = "rejected" // it never got to the executor, and is in no metric
)

// Record is what there is to say of a job or prefetch after its end.
type Record struct {
	Prefetch bool
	Session  string
	Project  string // empty when it could not be read
	Priority string
	Outcome  Outcome
	Status   int
	Facts    executor.Facts
	Total    time.Duration // from the request's headers to the end of the answer
	Bytes    int64         // of the answer's body
	Err      error         // why the outcome is not OK
}
