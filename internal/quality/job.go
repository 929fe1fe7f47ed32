package quality

import (
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
)

// FirstByte is a response that has begun, whatever will come of it.
type FirstByte struct {
	Upstream string
	// Arrived is when the job came to the sidecar, and Claimed when it was sent to the
	// upstream.
	Arrived, Claimed time.Time
	// Bound is how long the submitter waits for the first byte; 0 is not known.
	Bound time.Duration
}

// result is what a job counts as.
type result uint8

const (
	complete  result = iota // a whole response
	failed                  // a whole response with a status of 500 or more
	partial                 // a response that was cut short
	absent                  // no response of an upstream
	limited                 // refused because its project was at its limit: left out like uncounted
	uncounted               // it does not say how submitters are served
	results   = int(limited) + 1
)

// resultOf is what a job counts as: one that was refused as invalid is uncounted, and so is one whose
// submitter left: nobody knows why. count500 says whether a status of 500 or more is a failure.
func resultOf(j *record.Job, count500 bool) result {
	switch {
	case j.Outcome == intake.Shed && j.Shedding == intake.ProjectLimit:
		return limited
	case j.Outcome == intake.Gone, j.Outcome == intake.Rejected, j.Outcome == intake.TooLarge:
		return uncounted
	case j.Completeness == intake.Absent:
		return absent
	case j.Completeness == intake.Partial:
		return partial
	case j.Outcome == intake.Failed && count500:
		return failed
	}
	return complete
}

// resultAt is the result of a job at one upstream: the job's own for the upstream that answered,
// and absent for those that did not. What happened before says nothing of an upstream.
func resultAt(j *record.Job, i int, count500 bool) result {
	switch j.Attempts[i].Outcome {
	case pool.Gone, pool.Moved: // the submitter left; the sidecar took the job away
		return uncounted
	case pool.Answered, pool.Failed:
		return resultOf(j, count500)
	case pool.Truncated:
		if i == len(j.Attempts)-1 && j.Completeness == intake.Partial {
			return resultOf(j, count500)
		}
	}
	return absent
}
