package executor

import "time"

// Request asks for the result of the last joblet of a chain.
type Request struct {
	Priority Priority
	Chain    []Joblet // at least one
	// Queue bounds the time from submission to the start of the job's first
	// joblet, and Evaluate that from there to the end of its last one.
	Queue, Evaluate time.Duration
}

// Facts is what a job has seen so far.
type Facts struct {
	// Started says that a joblet which the job needs has started, or that it
	// needs none.
	Started bool
	// Wait is the time from submission to that start.
	Wait time.Duration
	// Execution is the time from the start to the end of the last joblet.
	Execution time.Duration
	// Cached says that the project's data was there: the job neither caused nor
	// waited for a fetch.
	Cached bool
	// Fetch is how long the fetch took that the job caused, or 0.
	Fetch time.Duration
}
