package quality

import (
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
)

// result is the class in which a job is counted.
type result uint8

const (
	complete  result = iota // a complete response
	failed                  // a complete response with a status of 500 or more
	partial                 // a truncated response
	absent                  // no upstream responded
	limited                 // refused because its project was at its limit: neither success nor failure
	refused                 // only for attempts: no connection was made; the upstream is shown as down instead
	uncounted               // says nothing about the quality of service
	results   = int(refused) + 1
)

// resultOf returns the class in which a job is counted. Jobs that were refused as invalid are uncounted, and so are jobs whose submitter
// disconnected, because the reason is unknown. With count500, a status of 500 or more is a failure.
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

// resultAt is the result of a job at one upstream: the job's own for the upstream that responded, and absent for those
// that did not. Failures before an attempt are not held against its upstream.
func resultAt(j *record.Job, i int, count500 bool) result {
	switch j.Attempts[i].Outcome {
	case pool.Gone, pool.Moved: // the submitter disconnected; the sidecar moved the job
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

// tally counts jobs by how they ended.
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

// bad returns how many jobs failed or had no complete response, and the number of all jobs.
func (t *tally) bad() (bad, all uint64) {
	bad = t.results[failed] + t.results[partial] + t.results[absent]
	return bad, bad + t.results[complete]
}
