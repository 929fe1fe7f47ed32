package replay

import (
	"time"

	"example.org/pilotfish/pkg/trace"
)

// due is when a job is sent, since the start of the replay.
func due(job *trace.Job) time.Duration { return duration(job.Offset) }

// pause is how long to sleep before a job that is due.
func pause(due, elapsed time.Duration) time.Duration { return max(0, due-elapsed) }

// Compress returns a job as it is in time that passes speed times as fast: its
// offset, costs and timeouts divided by speed. What was measured is left out.
func Compress(job trace.Job, speed float64) trace.Job {
	for _, seconds := range []*float64{
		&job.Offset, &job.Load, &job.SharedRules, &job.Operators, &job.Output,
		&job.Timeouts.Queue, &job.Timeouts.Evaluate, &job.Timeouts.Stream,
	} {
		*seconds /= speed
	}
	job.Measured = nil
	return job
}

// duration converts the trace's seconds, which keep their meaning to the nanosecond.
func duration(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
