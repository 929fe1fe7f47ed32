package quality

import (
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
)

// result is what a job counts as.
type result uint8

const (
	complete  result = iota // a whole response
	failed                  // a whole response with a status of 500 or more
	partial                 // a response that was cut short
	absent                  // no response of an upstream
	limited                 // refused because its project was at its limit: left out like uncounted
	refused                 // of an attempt: no connection. That the upstream is down is shown by itself
	uncounted               // it does not say how submitters are served
	results   = int(refused) + 1
)

// resultOf is what a job counts as: one that was refused as invalid is uncounted, and so is one whose
// submitter left: nobody knows why. count500 says whether a status of 500 or more is a failure.
func resultOf(j *record.Job, count500 bool) result {
	switch {
	case j.Outcome == intake.Shed && j.Shedding.Limits():
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
	case pool.Refused:
		return refused
	case pool.Answered, pool.Failed:
		return resultOf(j, count500)
	case pool.Truncated:
		if i == len(j.Attempts)-1 && j.Completeness == intake.Partial {
			return resultOf(j, count500)
		}
	}
	return absent
}

// tally is how jobs ended.
type tally struct {
	results [results]uint64
	lost    [max(intake.Outcomes, pool.Outcomes)]uint64 // by outcome: of a job for the fleet, of an attempt at an upstream
}

func (t *tally) add(r result, o uint8) {
	t.results[r]++
	if r == failed || r == partial || r == absent {
		t.lost[o]++
	}
}

func (t *tally) merge(other *tally) {
	for r, n := range other.results {
		t.results[r] += n
	}
	for o, n := range other.lost {
		t.lost[o] += n
	}
}

// bad is how many of all jobs failed or did not come whole.
func (t *tally) bad() (bad, all uint64) {
	bad = t.results[failed] + t.results[partial] + t.results[absent]
	return bad, bad + t.results[complete]
}
