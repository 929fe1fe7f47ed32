// Package trace holds the record of one job, and reads jobs from files: access logs, and the
// traces of prompts that Mooncake has published. Package workload invents such jobs, the
// simulator plays them, and the replay sends them to real sidecars.
package trace

import (
	"time"

	"example.org/pilotfish/pkg/selection"
)

// MaxSeconds bounds every time and every cost: some 31 years, so that sums of them stay within a time.Duration.
const MaxSeconds = 1e9

// Duration converts seconds.
func Duration(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Job is one job. A field that is zero is unknown, or nothing. Times are in seconds.
type Job struct {
	// Offset is when the submitter sends the job, counted from the first job.
	Offset float64
	// Project names the data that the job needs; "" is a job without affinity.
	Project  Project
	Priority selection.Priority
	// Prefetch only loads a project's data into the cache (the thesis, 3.2): it has only Load.
	Prefetch bool
	// Version is the generation of the project's data. An import raises it, and makes useless what is cached of older ones.
	Version int64
	// Shared names the shared rules. Jobs of one project, one version and equal names share that joblet; "" has none.
	Shared string

	// Load, SharedRules, Operators and Output are the core-seconds of the job's four joblets at an upstream (the
	// thesis, 3.4): FeedSource, which a cached project saves; SharedOperators; Operators; OutputFeed.
	Load, SharedRules, Operators, Output float64
	// Bytes is the size of the project's data in a cache.
	Bytes int64

	// Needs is the data that the job needs besides the project's.
	Needs []Need
	// Read and Write are the tokens of a prompt to a language model, and of its response. Blocks
	// names the prompt's blocks of BlockTokens tokens, the last of which can be shorter: equal names are
	// equal blocks with equal blocks before them.
	Read, Write int64
	Blocks      []int64

	Timeouts Timeouts
	// Submitter is the number of the submitter that sends the job. Each has a sidecar of its own.
	Submitter int64
	// After is the line of an earlier job that must end before this one is sent; 0 is none.
	After Line
}

// Need is data with a name of its own, which other jobs can need, too.
type Need struct {
	Name Project
	// Load is the core-seconds of a fetch, Bytes what the data takes in a cache.
	Load  float64
	Bytes int64
}

// Work is the job's core-seconds when nothing of it is cached or shared; 0 when unknown.
func (j *Job) Work() float64 { return j.Load + j.SharedRules + j.Operators + j.Output }

// Timeouts are the bounds that a job sets itself, in seconds; 0 is not given.
type Timeouts struct {
	// Queue bounds the wait for a core, Evaluate the processing up to the first byte of the response, Stream the response.
	Queue, Evaluate, Stream float64
}

// Line is the number of a job in its trace, counted from 1.
type Line int64

// Project is the text of a project's identifier. As in a job, the integer 12345 and the string "12345" are the same.
type Project string
