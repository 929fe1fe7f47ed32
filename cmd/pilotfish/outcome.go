package main

import (
	"pilotfish/internal/job"
	"pilotfish/internal/proxy"
)

// outcome translates.
func outcome(r *proxy.Record) job.Outcome {
	switch r.Outcome {
	case proxy.Answered:
		return job.Answered
	case proxy.Failed:
		return job.Failed
	case proxy.Shed:
		return job.Shed
	case proxy.Rejected:
		return job.Rejected
	}
	return job.Gone
}
