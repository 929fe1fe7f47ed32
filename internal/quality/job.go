package quality

import (
	"time"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

// Job is the key figures of a job that has ended: what its submitter got, and when
// (N. J. Turner's thesis, 3.3). Metrics, log, trace and page show these.
type Job struct {
	Priority     selection.Priority
	Outcome      intake.Outcome
	Completeness intake.Completeness
	Arrived      time.Time
	// FirstByte and LastByte are the times from the arrival to the first byte of the
	// response, which is not read where the job is absent, and to the job's end.
	FirstByte, LastByte time.Duration
	// Waited is how long the job was ready and not worked on, in the sidecar and at the
	// upstream together; negative where the upstream does not tell.
	Waited time.Duration
	// Attempts are in the order of their start.
	Attempts []Attempt
}

// Attempt is one try at one upstream.
type Attempt struct {
	Upstream string
	Outcome  pool.Outcome
	// Start and End are from the job's arrival.
	Start, End time.Duration
}

// counts reports whether a job says how submitters are served. One that was refused as
// invalid does not, nor one whose submitter left: nobody knows why.
func (j *Job) counts() bool {
	return j.Outcome.Tried() && j.Outcome != intake.Gone || j.Outcome == intake.Shed || j.Outcome == intake.Broken
}

// Stretch is how many times as long the job took as it would with no load; ok is false
// where that is not known.
func (j *Job) Stretch() (times float64, ok bool) {
	if j.Waited < 0 || j.Completeness != intake.Complete {
		return 0, false
	}
	unloaded := j.LastByte - j.Waited
	if unloaded <= 0 {
		return 0, false
	}
	return j.LastByte.Seconds() / unloaded.Seconds(), true
}

// at is a job as one upstream served it: the job's own figures for the upstream that
// answered, and a job without an answer for those that did not. Times begin with the
// attempt, for an upstream is not to blame for what was before. ok is false for an
// attempt that says nothing of the upstream.
func (j *Job) at(i int) (job Job, ok bool) {
	a := &j.Attempts[i]
	job = *j
	job.Attempts = nil
	job.Arrived = j.Arrived.Add(a.Start)
	job.LastByte = a.End - a.Start
	switch a.Outcome {
	case pool.Gone, pool.Moved: // the submitter left; the sidecar took the job away
		return Job{}, false
	case pool.Answered, pool.Failed:
		job.FirstByte -= a.Start
		job.Waited = max(-1, job.Waited-a.Start)
		return job, true
	case pool.Truncated:
		if i == len(j.Attempts)-1 && j.Completeness == intake.Partial {
			job.FirstByte -= a.Start
			return job, true
		}
	}
	job.Outcome, job.Completeness, job.Waited = intake.NoAnswer, intake.Absent, -1
	return job, true
}

// FirstByte is a response that has begun, whatever will come of it.
type FirstByte struct {
	Upstream string
	// Arrived is when the job came to the sidecar, and Claimed when it was sent to the
	// upstream.
	Arrived, Claimed time.Time
	// Bound is how long the submitter waits for the first byte; 0 is not known.
	Bound time.Duration
}
